// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --graphc-lift-slices --canonicalize %s | filecheck %s

// An element of each row of joined columns is one of these, at the next column for a slice: no matrix is made.
// CHECK-LABEL: @of_joined
// CHECK-NOT: "graphc.join"
// CHECK: "graphc.take"({{.*}}columns = 4 : i64, in_range{{.*}}tensor<32xf64>
// CHECK: "graphc.exp"({{.*}}tensor<8xf64>
// CHECK-NOT: "graphc.join"
func.func @of_joined(%p: tensor<8x4xf64>, %at: tensor<8x1xi64>) -> tensor<8x1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  %zero = arith.constant dense<0.0> : tensor<8x1xf64>
  %edge = tensor.cast %zero : tensor<8x1xf64> to tensor<8x?xf64>
  %0 = "graphc.exp"(%p) : (tensor<8x4xf64>) -> tensor<8x4xf64>
  %1 = tensor.cast %0 : tensor<8x4xf64> to tensor<8x?xf64>
  %2 = "graphc.join"(%edge, %1, %edge) {axis = 1 : i64} : (tensor<8x?xf64>, tensor<8x?xf64>, tensor<8x?xf64>) -> tensor<8x6xf64>
  %3 = "graphc.slice"(%2, %c0, %c1, %c8, %c5, %c1, %c1) : (tensor<8x6xf64>, index, index, index, index, index, index) -> tensor<8x5xf64>
  %4 = "graphc.reshape"(%3, %c40) : (tensor<8x5xf64>, index) -> tensor<40xf64>
  %5 = "graphc.take"(%4, %at) {axis = 0 : i64, in_range, columns = 5 : i64} : (tensor<40xf64>, tensor<8x1xi64>) -> tensor<8x1xf64>
  return %5 : tensor<8x1xf64>
}

// -----

// Sums along rows and columns of what was put into zeros need no zeros.
// CHECK-LABEL: @sums_of_put
// CHECK-NOT: "graphc.reduce_sum"
// CHECK: "graphc.put"({{.*}}(tensor<4xf64>, tensor<8xf64>, tensor<8xi64>) -> tensor<4xf64>
// CHECK-NOT: "graphc.reduce_sum"
func.func @sums_of_put(%y: tensor<8xf64>, %at: tensor<8xi64>) -> (tensor<4xf64>, tensor<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c8 = arith.constant 8 : index
  %zeros = arith.constant dense<0.0> : tensor<40xf64>
  %0 = "graphc.put"(%zeros, %y, %at) {axis = 0 : i64, accumulate = true, in_range, columns = 5 : i64} : (tensor<40xf64>, tensor<8xf64>, tensor<8xi64>) -> tensor<40xf64>
  %1 = "graphc.reshape"(%0, %c8, %c5) : (tensor<40xf64>, index, index) -> tensor<8x5xf64>
  %2 = "graphc.slice"(%1, %c0, %c1, %c8, %c4, %c1, %c1) : (tensor<8x5xf64>, index, index, index, index, index, index) -> tensor<8x4xf64>
  %3 = "graphc.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<8x4xf64>) -> tensor<4xf64>
  %4 = "graphc.reduce_sum"(%2) {axes = array<i64: 1>} : (tensor<8x4xf64>) -> tensor<8xf64>
  return %3, %4 : tensor<4xf64>, tensor<8xf64>
}

// -----

// Nothing is known of the rows, something else reads the matrix, or as many elements as it has are read of it.
// CHECK-LABEL: @that_stay
// CHECK-COUNT-3: "graphc.join"
func.func @that_stay(%x: tensor<8x1xf64>, %at: tensor<8xi64>) -> (tensor<8xf64>, tensor<8xf64>, tensor<8x2xf64>, tensor<4xf64>) {
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %0 = "graphc.exp"(%x) : (tensor<8x1xf64>) -> tensor<8x1xf64>
  %1 = "graphc.join"(%x, %0) {axis = 1 : i64} : (tensor<8x1xf64>, tensor<8x1xf64>) -> tensor<8x2xf64>
  %2 = "graphc.reshape"(%1, %c16) : (tensor<8x2xf64>, index) -> tensor<16xf64>
  %3 = "graphc.take"(%2, %at) {axis = 0 : i64, in_range} : (tensor<16xf64>, tensor<8xi64>) -> tensor<8xf64>
  %4 = "graphc.join"(%0, %x) {axis = 1 : i64} : (tensor<8x1xf64>, tensor<8x1xf64>) -> tensor<8x2xf64>
  %5 = "graphc.reshape"(%4, %c16) : (tensor<8x2xf64>, index) -> tensor<16xf64>
  %6 = "graphc.take"(%5, %at) {axis = 0 : i64, in_range, columns = 2 : i64} : (tensor<16xf64>, tensor<8xi64>) -> tensor<8xf64>
  %7 = "graphc.join"(%0, %0) {axis = 1 : i64} : (tensor<8x1xf64>, tensor<8x1xf64>) -> tensor<8x2xf64>
  %8 = "graphc.reshape"(%7, %c16) : (tensor<8x2xf64>, index) -> tensor<16xf64>
  %9 = "graphc.slice"(%8, %c8, %c8, %c8) : (tensor<16xf64>, index, index, index) -> tensor<4xf64>
  return %3, %6, %4, %9 : tensor<8xf64>, tensor<8xf64>, tensor<8x2xf64>, tensor<4xf64>
}
