// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @rank(%a: tensor<3xf64>) {
  // expected-error @below {{tensor #0 must have at least 2 dimensions, but is tensor<3xf64>}}
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @square(%a: tensor<3x4xf64>) {
  // expected-error @below {{dimension 1 of operand #0 is 4, expected 3}}
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64} : (tensor<3x4xf64>) -> tensor<3x4xf64>
  return
}

// -----

func.func @batch(%a: tensor<2x3x3xf64>, %b: tensor<3x1xf64>) {
  // expected-error @below {{all tensors must have the same number of leading dimensions}}
  %0 = "graphc.solve"(%a, %b) : (tensor<2x3x3xf64>, tensor<3x1xf64>) -> tensor<2x3x1xf64>
  return
}

// -----

func.func @sizes(%x: tensor<?xf64>, %mask: tensor<?xi1>) {
  // expected-error @below {{expects 2 tensors and 1 sizes, and gives 1 results; has 2 operands and 1 results}}
  %0 = "graphc.compress"(%x, %mask) : (tensor<?xf64>, tensor<?xi1>) -> tensor<?xf64>
  return
}

// -----

func.func @results(%a: tensor<3x3xf64>) {
  // expected-error @below {{expects 1 tensors and 0 sizes, and gives 2 results; has 1 operands and 1 results}}
  %0 = "graphc.eigh"(%a) {lower = 1 : i64} : (tensor<3x3xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @result_shape(%a: tensor<3x3xf64>) {
  // expected-error @below {{result dimension 0 must be 3, but is 4}}
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64} : (tensor<3x3xf64>) -> tensor<4x3xf64>
  return
}
