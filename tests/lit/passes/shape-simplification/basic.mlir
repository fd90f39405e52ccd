// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-shape-simplification %s --split-input-file | filecheck %s

// Sizes come from the arguments; the values are not needed, but the sizes of the operands agree, and there can
// be such an array.
// CHECK-LABEL: @dim_of_result
// CHECK-NOT: graphc.matmul
// CHECK: "graphc.check"{{.*}}columns
// CHECK: "graphc.check"{{.*}}memory holds at most
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK-NEXT: return %[[N]]
func.func @dim_of_result(%x: tensor<?x?xf64>, %y: tensor<?x?xf64>) -> index {
  %c1 = arith.constant 1 : index
  %0 = "graphc.matmul"(%y, %x) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.exp"(%0) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = tensor.dim %1, %c1 : tensor<?x?xf64>
  return %2 : index
}

// -----

// A shape that is claimed is tested, also where nobody reads an element.
// CHECK-LABEL: @claimed
// CHECK: "graphc.check"{{.*}}specify_shape: dimension 0
// CHECK-NOT: graphc.check
// CHECK: return %c3_0
func.func @claimed(%x: tensor<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %0 = "graphc.specify_shape"(%x, %c3) : (tensor<?xf64>, index) -> tensor<3xf64>
  %1 = "graphc.exp"(%0) : (tensor<3xf64>) -> tensor<3xf64>
  %2 = tensor.dim %1, %c0 : tensor<3xf64>
  return %2 : index
}

// -----

// CHECK-LABEL: @join
// CHECK: tensor.dim %arg0
// CHECK: tensor.dim %arg1
// CHECK: %[[S:.*]] = arith.addi
// CHECK-NEXT: return %[[S]]
func.func @join(%x: tensor<?xf64>, %y: tensor<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %0 = "graphc.join"(%x, %y) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = tensor.dim %0, %c0 : tensor<?xf64>
  return %1 : index
}

// -----

// CHECK-LABEL: @no_effect
// CHECK-NEXT: return %arg0
func.func @no_effect(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf64>
  %0 = "graphc.reshape"(%x, %n, %c3) : (tensor<?x3xf64>, index, index) -> tensor<?x3xf64>
  %1 = "graphc.broadcast_to"(%0, %n, %c3) : (tensor<?x3xf64>, index, index) -> tensor<?x3xf64>
  %2 = "graphc.specify_shape"(%1, %n, %c3) : (tensor<?x3xf64>, index, index) -> tensor<?x3xf64>
  %3 = "graphc.slice"(%2, %c0, %c0, %n, %c3, %c1, %c1) : (tensor<?x3xf64>, index, index, index, index, index, index) -> tensor<?x3xf64>
  %4 = "graphc.dimshuffle"(%3) {order = array<i64: 0, 1>} : (tensor<?x3xf64>) -> tensor<?x3xf64>
  return %4 : tensor<?x3xf64>
}

// -----

// CHECK-LABEL: @round_trip
// CHECK-NEXT: return %arg0
func.func @round_trip(%n: index) -> index {
  %0 = arith.index_cast %n : index to i64
  %1 = tensor.from_elements %0 : tensor<i64>
  %2 = tensor.extract %1[] : tensor<i64>
  %3 = arith.index_cast %2 : i64 to index
  return %3 : index
}

// -----

// A reshape that may change the shape stays.
// CHECK-LABEL: @unknown
// CHECK: graphc.reshape
func.func @unknown(%x: tensor<?xf64>, %n: index) -> tensor<?xf64> {
  %0 = "graphc.reshape"(%x, %n) : (tensor<?xf64>, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// Only the size of the exponential is needed, and that is the argument's.
// CHECK-LABEL: @second
// CHECK-NOT: graphc.exp
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: "graphc.broadcast_to"(%arg1, %[[N]])
func.func @second(%x: tensor<?xf64>, %y: tensor<1xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.second"(%0, %y) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}
