// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-lift-slices --split-input-file %s | filecheck %s

// The sizes that an addition asks for are compared before only some elements are added.
// CHECK-LABEL: @compares_sizes
// CHECK: "graphc.check"
// CHECK: %[[X:.*]] = "graphc.slice"(%arg0, %arg2
// CHECK: %[[Y:.*]] = "graphc.slice"(%arg1, %arg2
// CHECK-NEXT: "graphc.add"(%[[X]], %[[Y]])
func.func @compares_sizes(%x: tensor<?xf64>, %y: tensor<?xf64>, %at: index) -> tensor<1xf64> {
  %c1 = arith.constant 1 : index
  %0 = "graphc.add"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.slice"(%0, %at, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %1 : tensor<1xf64>
}

// -----

// Rows of rows: a slice of the first axis goes through the reshapes around a product.
// CHECK-LABEL: @products_of_stacks
// CHECK: %[[ROWS:.*]] = "graphc.slice"(%arg0, %arg2, {{.*}} -> tensor<1x4x8xf64>
// CHECK-NEXT: %[[FLAT:.*]] = "graphc.reshape"(%[[ROWS]], {{.*}} -> tensor<4x8xf64>
// CHECK: "graphc.matmul"(%[[FLAT]], %arg1)
func.func @products_of_stacks(%h: tensor<?x4x8xf64>, %w: tensor<8x5xf64>, %at: index) -> tensor<1x4x5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %h, %c0 : tensor<?x4x8xf64>
  %rows = arith.muli %n, %c4 : index
  %0 = "graphc.reshape"(%h, %rows, %c8) : (tensor<?x4x8xf64>, index, index) -> tensor<?x8xf64>
  %1 = "graphc.matmul"(%0, %w) {transpose_a = false, transpose_b = false} : (tensor<?x8xf64>, tensor<8x5xf64>) -> tensor<?x5xf64>
  %2 = "graphc.reshape"(%1, %n, %c4, %c5) : (tensor<?x5xf64>, index, index, index) -> tensor<?x4x5xf64>
  %3 = "graphc.slice"(%2, %at, %c0, %c0, %c1, %c4, %c5, %c1, %c1, %c1) : (tensor<?x4x5xf64>, index, index, index, index, index, index, index, index, index) -> tensor<1x4x5xf64>
  return %3 : tensor<1x4x5xf64>
}

// -----

// What is needed in full is computed once; the way to a slice of it ends there.
// CHECK-LABEL: @other_readers
// CHECK-NEXT: %[[C:.*]] = arith.constant
// CHECK-NEXT: %[[EXP:.*]] = "graphc.exp"(%arg0)
// CHECK-NEXT: "graphc.reduce_sum"(%[[EXP]])
// CHECK: %[[PART:.*]] = "graphc.slice"(%[[EXP]]
// CHECK-NEXT: "graphc.tanh"(%[[PART]])
func.func @other_readers(%x: tensor<?xf64>, %at: index) -> (tensor<f64>, tensor<1xf64>) {
  %c1 = arith.constant 1 : index
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.tanh"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.slice"(%2, %at, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %1, %3 : tensor<f64>, tensor<1xf64>
}

// -----

// Nor is anything moved of which two large parts are read.
// CHECK-LABEL: @two_parts
// CHECK: %[[EXP:.*]] = "graphc.exp"(%arg0)
// CHECK-NEXT: "graphc.slice"(%[[EXP]]
// CHECK-NEXT: "graphc.slice"(%[[EXP]]
func.func @two_parts(%x: tensor<?xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.slice"(%0, %c0, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  %2 = "graphc.slice"(%0, %c1, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %1, %2 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Elements at an array of indices: the logarithm is that of what is taken, once for both takes.
// CHECK-LABEL: @elements_of_rows
// CHECK: %[[FLAT:.*]] = "graphc.reshape"(%arg0, {{.*}} -> tensor<40xf64>
// CHECK: %[[TAKEN:.*]] = "graphc.take"(%[[FLAT]], {{.*}} -> tensor<8xf64>
// CHECK: %[[LOG:.*]] = "graphc.log"(%[[TAKEN]]) : (tensor<8xf64>)
// CHECK-NOT: tensor<8x5xf64>) -> tensor<8x5xf64>
// CHECK: "graphc.mul"(%[[LOG]]
// CHECK-NOT: "graphc.log"
func.func @elements_of_rows(%p: tensor<8x5xf64>, %at: tensor<8x1xi64>) -> (tensor<8x1xf64>, tensor<8x1xf64>) {
  %c40 = arith.constant 40 : index
  %two = arith.constant dense<2.0> : tensor<1x1xf64>
  %0 = "graphc.log"(%p) : (tensor<8x5xf64>) -> tensor<8x5xf64>
  %1 = "graphc.mul"(%0, %two) : (tensor<8x5xf64>, tensor<1x1xf64>) -> tensor<8x5xf64>
  %2 = "graphc.reshape"(%0, %c40) : (tensor<8x5xf64>, index) -> tensor<40xf64>
  %3 = "graphc.reshape"(%1, %c40) : (tensor<8x5xf64>, index) -> tensor<40xf64>
  %4 = "graphc.take"(%3, %at) {axis = 0 : i64} : (tensor<40xf64>, tensor<8x1xi64>) -> tensor<8x1xf64>
  %5 = "graphc.take"(%2, %at) {axis = 0 : i64} : (tensor<40xf64>, tensor<8x1xi64>) -> tensor<8x1xf64>
  return %4, %5 : tensor<8x1xf64>, tensor<8x1xf64>
}

// -----

// Columns: what is broadcast along the rows is taken from, what has one column is not.
// CHECK-LABEL: @columns_at_indices
// CHECK-DAG: %[[X:.*]] = "graphc.take"(%arg0, %arg2) {axis = 1 : i64} : (tensor<3x9xf64>, tensor<2xi64>) -> tensor<3x2xf64>
// CHECK: %[[SUM:.*]] = "graphc.add"(%[[X]], %arg1) : (tensor<3x2xf64>, tensor<3x1xf64>) -> tensor<3x2xf64>
// CHECK: "graphc.exp"(%[[SUM]])
func.func @columns_at_indices(%x: tensor<3x9xf64>, %y: tensor<3x1xf64>, %at: tensor<2xi64>) -> tensor<3x2xf64> {
  %0 = "graphc.add"(%x, %y) : (tensor<3x9xf64>, tensor<3x1xf64>) -> tensor<3x9xf64>
  %1 = "graphc.exp"(%0) : (tensor<3x9xf64>) -> tensor<3x9xf64>
  %2 = "graphc.take"(%1, %at) {axis = 1 : i64} : (tensor<3x9xf64>, tensor<2xi64>) -> tensor<3x2xf64>
  return %2 : tensor<3x2xf64>
}

// -----

// Something else reads the function in full; more than half of it is taken; rows and single elements of one tensor.
// CHECK-LABEL: @takes_that_stay
// CHECK-COUNT-3: "graphc.exp"{{.*}} tensor<4x4xf64>
func.func @takes_that_stay(%x: tensor<4x4xf64>, %y: tensor<4x4xf64>, %z: tensor<4x4xf64>, %at: tensor<2xi64>, %most: tensor<3xi64>) -> (tensor<4x4xf64>, tensor<2x4xf64>, tensor<3x4xf64>, tensor<2xf64>, tensor<2x4xf64>) {
  %c16 = arith.constant 16 : index
  %0 = "graphc.exp"(%x) : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %1 = "graphc.take"(%0, %at) {axis = 0 : i64} : (tensor<4x4xf64>, tensor<2xi64>) -> tensor<2x4xf64>
  %2 = "graphc.exp"(%y) : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %3 = "graphc.take"(%2, %most) {axis = 0 : i64} : (tensor<4x4xf64>, tensor<3xi64>) -> tensor<3x4xf64>
  %4 = "graphc.exp"(%z) : (tensor<4x4xf64>) -> tensor<4x4xf64>
  %5 = "graphc.reshape"(%4, %c16) : (tensor<4x4xf64>, index) -> tensor<16xf64>
  %6 = "graphc.take"(%5, %at) {axis = 0 : i64} : (tensor<16xf64>, tensor<2xi64>) -> tensor<2xf64>
  %7 = "graphc.take"(%4, %at) {axis = 0 : i64} : (tensor<4x4xf64>, tensor<2xi64>) -> tensor<2x4xf64>
  return %0, %1, %3, %6, %7 : tensor<4x4xf64>, tensor<2x4xf64>, tensor<3x4xf64>, tensor<2xf64>, tensor<2x4xf64>
}
