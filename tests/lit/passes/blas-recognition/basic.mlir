// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-blas-recognition %s --split-input-file | filecheck %s

// CHECK-LABEL: @result
// CHECK: "graphc.matmul"(%arg1, %arg0) {transpose_a = true, transpose_b = true}
// CHECK-NEXT: return
func.func @result(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// CHECK-LABEL: @outer
// CHECK-NEXT: "graphc.mul"(%arg0, %arg1) : (tensor<?x1xf64>, tensor<1x?xf64>) -> tensor<?x?xf64>
// CHECK-NEXT: return
func.func @outer(%a: tensor<?x1xf64>, %b: tensor<1x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<?x1xf64>, tensor<1x?xf64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}

// -----

// CHECK-LABEL: @inner
// CHECK: %[[P:.*]] = "graphc.mul"
// CHECK: "graphc.reduce_sum"(%[[P]]) {axes = array<i64: 1>}
// CHECK-NOT: graphc.matmul
func.func @inner(%a: tensor<1x?xf64>, %b: tensor<?x1xf64>) -> tensor<1x1xf64> {
  %0 = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<1x?xf64>, tensor<?x1xf64>) -> tensor<1x1xf64>
  return %0 : tensor<1x1xf64>
}

// -----

// A matrix times a column stays a product.
// CHECK-LABEL: @matrix_vector
// CHECK: graphc.matmul
func.func @matrix_vector(%a: tensor<?x?xf64>, %b: tensor<?x1xf64>) -> tensor<?x1xf64> {
  %0 = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  return %0 : tensor<?x1xf64>
}

// -----

// What a cast says of the sizes of the transpose is said of the matrix.
// CHECK-LABEL: @cast_of_a_transpose
// CHECK: %[[B:.*]] = tensor.cast %arg1 : tensor<?x?xf64> to tensor<3x4xf64>
// CHECK: "graphc.matmul"(%arg0, %[[B]]) {transpose_a = false, transpose_b = true}
// CHECK-NEXT: return
func.func @cast_of_a_transpose(%a: tensor<1x4xf64>, %b: tensor<?x?xf64>) -> tensor<1x3xf64> {
  %0 = "graphc.dimshuffle"(%b) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = tensor.cast %0 : tensor<?x?xf64> to tensor<4x3xf64>
  %2 = "graphc.matmul"(%a, %1) {transpose_a = false, transpose_b = false} : (tensor<1x4xf64>, tensor<4x3xf64>) -> tensor<1x3xf64>
  return %2 : tensor<1x3xf64>
}
