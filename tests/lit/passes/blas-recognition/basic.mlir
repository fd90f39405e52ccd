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

// -----

// A sum over rows of outer products is one product; both orders of the axes.
// CHECK-LABEL: @sum_of_outer_products
// CHECK-NOT: graphc.reduce_sum
// CHECK: "graphc.matmul"(%arg0, %arg1) {transpose_a = true, transpose_b = false} : (tensor<5x3xf64>, tensor<5x4xf64>) -> tensor<3x4xf64>
// CHECK: "graphc.matmul"(%arg1, %arg0) {transpose_a = true, transpose_b = false} : (tensor<5x4xf64>, tensor<5x3xf64>) -> tensor<4x3xf64>
func.func @sum_of_outer_products(%a: tensor<5x3xf64>, %b: tensor<5x4xf64>) -> (tensor<3x4xf64>, tensor<4x3xf64>) {
  %0 = "graphc.dimshuffle"(%a) {order = array<i64: 0, 1, -1>} : (tensor<5x3xf64>) -> tensor<5x3x1xf64>
  %1 = "graphc.dimshuffle"(%b) {order = array<i64: 0, -1, 1>} : (tensor<5x4xf64>) -> tensor<5x1x4xf64>
  %2 = "graphc.mul"(%0, %1) : (tensor<5x3x1xf64>, tensor<5x1x4xf64>) -> tensor<5x3x4xf64>
  %3 = "graphc.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<5x3x4xf64>) -> tensor<3x4xf64>
  %4 = "graphc.dimshuffle"(%a) {order = array<i64: 0, -1, 1>} : (tensor<5x3xf64>) -> tensor<5x1x3xf64>
  %5 = "graphc.dimshuffle"(%b) {order = array<i64: 0, 1, -1>} : (tensor<5x4xf64>) -> tensor<5x4x1xf64>
  %6 = "graphc.mul"(%4, %5) : (tensor<5x1x3xf64>, tensor<5x4x1xf64>) -> tensor<5x4x3xf64>
  %7 = "graphc.reduce_sum"(%6) {axes = array<i64: 0>} : (tensor<5x4x3xf64>) -> tensor<4x3xf64>
  return %3, %7 : tensor<3x4xf64>, tensor<4x3xf64>
}

// -----

// Axes of both factors that stay, sums over unknown sizes (which are compared at the call), sums of float32 (more accurate than BLAS's) and products with other uses stay.
// CHECK-LABEL: @other_sums
// CHECK-NOT: graphc.matmul
func.func @other_sums(%a: tensor<5x3x1xf64>, %b: tensor<5x3x4xf64>, %c: tensor<5x3x1xf32>, %d: tensor<5x1x4xf32>, %e: tensor<5x1x4xf64>, %g: tensor<?x3x1xf64>, %h: tensor<?x1x4xf64>) -> (tensor<3x4xf64>, tensor<3x4xf32>, tensor<3x4xf64>, tensor<5x3x4xf64>, tensor<3x4xf64>) {
  %0 = "graphc.mul"(%a, %b) : (tensor<5x3x1xf64>, tensor<5x3x4xf64>) -> tensor<5x3x4xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<5x3x4xf64>) -> tensor<3x4xf64>
  %2 = "graphc.mul"(%c, %d) : (tensor<5x3x1xf32>, tensor<5x1x4xf32>) -> tensor<5x3x4xf32>
  %3 = "graphc.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<5x3x4xf32>) -> tensor<3x4xf32>
  %4 = "graphc.mul"(%a, %e) : (tensor<5x3x1xf64>, tensor<5x1x4xf64>) -> tensor<5x3x4xf64>
  %5 = "graphc.reduce_sum"(%4) {axes = array<i64: 0>} : (tensor<5x3x4xf64>) -> tensor<3x4xf64>
  %6 = "graphc.mul"(%g, %h) : (tensor<?x3x1xf64>, tensor<?x1x4xf64>) -> tensor<?x3x4xf64>
  %7 = "graphc.reduce_sum"(%6) {axes = array<i64: 0>} : (tensor<?x3x4xf64>) -> tensor<3x4xf64>
  return %1, %3, %5, %4, %7 : tensor<3x4xf64>, tensor<3x4xf32>, tensor<3x4xf64>, tensor<5x3x4xf64>, tensor<3x4xf64>
}
