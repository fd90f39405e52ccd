// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-linear-systems %s --split-input-file | filecheck %s

// b @ inv(A)
// CHECK-LABEL: @right
// CHECK: %[[T:.*]] = "graphc.dimshuffle"(%arg1)
// CHECK-NEXT: %[[X:.*]] = "graphc.solve"(%arg0, %[[T]]) {assume = 0 : i64, lower = 0 : i64, transposed = 1 : i64}
// CHECK-NEXT: "graphc.dimshuffle"(%[[X]])
// CHECK-NOT: graphc.inv
func.func @right(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.inv"(%a) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.matmul"(%b, %0) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// An inverse with two uses is computed anyway.
// CHECK-LABEL: @shared
// CHECK: graphc.inv
// CHECK: graphc.matmul
func.func @shared(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> (tensor<?x?xf64>, tensor<?x?xf64>) {
  %0 = "graphc.inv"(%a) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.matmul"(%0, %b) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0, %1 : tensor<?x?xf64>, tensor<?x?xf64>
}

// -----

// CHECK-LABEL: @twice
// CHECK-NEXT: return %arg0
func.func @twice(%a: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.inv"(%a) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.inv"(%0) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// log(abs(det(A)))
// CHECK-LABEL: @magnitude
// CHECK-NEXT: %[[S:.*]]:2 = "graphc.slogdet"(%arg0)
// CHECK-NEXT: return %[[S]]#1
func.func @magnitude(%a: tensor<2x?x?xf64>) -> tensor<2xf64> {
  %0 = "graphc.det"(%a) : (tensor<2x?x?xf64>) -> tensor<2xf64>
  %1 = "graphc.abs"(%0) : (tensor<2xf64>) -> tensor<2xf64>
  %2 = "graphc.log"(%1) : (tensor<2xf64>) -> tensor<2xf64>
  return %2 : tensor<2xf64>
}

// -----

// A determinant that is a result stays.
// CHECK-LABEL: @wanted
// CHECK: graphc.det
// CHECK-NOT: graphc.slogdet
func.func @wanted(%a: tensor<?x?xf64>) -> (tensor<f64>, tensor<f64>) {
  %0 = "graphc.det"(%a) : (tensor<?x?xf64>) -> tensor<f64>
  %1 = "graphc.log"(%0) : (tensor<f64>) -> tensor<f64>
  return %0, %1 : tensor<f64>, tensor<f64>
}

// -----

// CHECK-LABEL: @factor
// CHECK: %[[L:.*]] = "graphc.cholesky"(%arg0)
// CHECK-NEXT: "graphc.solve_triangular"(%[[L]], %arg1) {lower = 1 : i64, trans = 1 : i64, unit_diagonal = 0 : i64}
// CHECK-NEXT: return
func.func @factor(%a: tensor<?x?xf64>, %b: tensor<?x2xf64>) -> tensor<?x2xf64> {
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = "graphc.solve"(%1, %b) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64} : (tensor<?x?xf64>, tensor<?x2xf64>) -> tensor<?x2xf64>
  return %2 : tensor<?x2xf64>
}

// -----

// L @ L.T is factored already.
// CHECK-LABEL: @product
// CHECK: %[[L:.*]] = "graphc.cholesky"(%arg0)
// CHECK-NEXT: %[[Y:.*]] = "graphc.solve_triangular"(%[[L]], %arg1) {lower = 1 : i64, trans = 0 : i64
// CHECK-NEXT: %[[X:.*]] = "graphc.solve_triangular"(%[[L]], %[[Y]]) {lower = 1 : i64, trans = 1 : i64
// CHECK-NEXT: return %[[X]], %[[L]]
func.func @product(%a: tensor<?x?xf64>, %b: tensor<?x2xf64>) -> (tensor<?x2xf64>, tensor<?x?xf64>) {
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.matmul"(%0, %0) {transpose_a = false, transpose_b = true} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = "graphc.solve"(%1, %b) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64} : (tensor<?x?xf64>, tensor<?x2xf64>) -> tensor<?x2xf64>
  %3 = "graphc.cholesky"(%1) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %2, %3 : tensor<?x2xf64>, tensor<?x?xf64>
}

// -----

// A system and the transposed one, as gradients have them: one factorization.
// CHECK-LABEL: @two
// CHECK: "graphc.lu_factor"
// CHECK-COUNT-4: "graphc.solve_triangular"
// CHECK-NOT: graphc.lu_factor
// CHECK-NOT: "graphc.solve"
func.func @two(%a: tensor<?x?xf64>, %b: tensor<?x1xf64>) -> (tensor<?x1xf64>, tensor<?x1xf64>) {
  %0 = "graphc.solve"(%a, %b) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64} : (tensor<?x?xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %1 = "graphc.solve"(%a, %0) {assume = 0 : i64, lower = 0 : i64, transposed = 1 : i64} : (tensor<?x?xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  return %0, %1 : tensor<?x1xf64>, tensor<?x1xf64>
}

// -----

// Small matrices of a batch are factored twice.
// CHECK-LABEL: @batch
// CHECK-COUNT-2: "graphc.solve"
func.func @batch(%a: tensor<?x8x8xf64>, %b: tensor<?x8x1xf64>) -> (tensor<?x8x1xf64>, tensor<?x8x1xf64>) {
  %0 = "graphc.solve"(%a, %b) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64} : (tensor<?x8x8xf64>, tensor<?x8x1xf64>) -> tensor<?x8x1xf64>
  %1 = "graphc.solve"(%a, %0) {assume = 0 : i64, lower = 0 : i64, transposed = 1 : i64} : (tensor<?x8x8xf64>, tensor<?x8x1xf64>) -> tensor<?x8x1xf64>
  return %0, %1 : tensor<?x8x1xf64>, tensor<?x8x1xf64>
}
