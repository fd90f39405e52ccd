// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @missing(%x: tensor<2x3xf64>) {
  // expected-error @below {{needs an attribute 'axes' of the form array<i64: ...>}}
  %0 = "graphc.reduce_sum"(%x) : (tensor<2x3xf64>) -> tensor<2xf64>
  return
}

// -----

func.func @form(%x: tensor<2x3xf64>) {
  // expected-error @below {{needs an attribute 'axes' of the form array<i64: ...>}}
  %0 = "graphc.reduce_sum"(%x) {axes = [1]} : (tensor<2x3xf64>) -> tensor<2xf64>
  return
}

// -----

func.func @range(%x: tensor<2x3xf64>) {
  // expected-error @below {{axes must be ascending, distinct and in range for rank 2, but are [2]}}
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 2>} : (tensor<2x3xf64>) -> tensor<2xf64>
  return
}

// -----

func.func @order(%x: tensor<2x3xf64>) {
  // expected-error @below {{axes must be ascending, distinct and in range for rank 2, but are [1, 0]}}
  %0 = "graphc.softmax"(%x) {axes = array<i64: 1, 0>} : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return
}

// -----

func.func @kept(%x: tensor<2x3xf64>) {
  // expected-error @below {{result dimension 0 must be 2, but is 3}}
  %0 = "graphc.reduce_prod"(%x) {axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @elements(%x: tensor<2x3xf64>) {
  // expected-error @below {{result must have element type f64, but has f32}}
  %0 = "graphc.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @softmax_elements(%x: tensor<2x3xf64>) {
  // expected-error @below {{result must have element type f64, but has f32}}
  %0 = "graphc.log_softmax"(%x) {axes = array<i64: 1>} : (tensor<2x3xf64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @position(%x: tensor<2x3xf64>) {
  // expected-error @below {{result must have element type i64, but has i32}}
  %0 = "graphc.argmax"(%x) {axis = 0 : i64} : (tensor<2x3xf64>) -> tensor<3xi32>
  return
}

// -----

func.func @axis(%x: tensor<2x3xf64>) {
  // expected-error @below {{axis -1 is out of range for rank 2}}
  %0 = "graphc.argmin"(%x) {axis = -1 : i64} : (tensor<2x3xf64>) -> tensor<3xi64>
  return
}

// -----

func.func @and(%x: tensor<2x3xi1>) {
  // expected-error @below {{result must have rank 0, but has rank 1}}
  %0 = "graphc.reduce_and"(%x) {axes = array<i64: 0, 1>} : (tensor<2x3xi1>) -> tensor<1xi1>
  // The verifier stops at the first error of a block.
  %1 = "graphc.reduce_or"(%x) {axes = array<i64: 0, 1>} : (tensor<2x3xi1>) -> tensor<i1>
  return
}
