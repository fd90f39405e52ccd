// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @kind(%x: tensor<?xf64>, %h: tensor<1xf64>, %n: index) {
  // expected-error @below {{needs an attribute 'kind' that is one of add, mul, max, min, and, or}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "sub", reverse = false, keep_initial = false, reassociate = false} : (tensor<?xf64>, tensor<1xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @integers(%x: tensor<?xf64>, %h: tensor<1xf64>, %n: index) {
  // expected-error @below {{'or' needs integers or booleans, but the element type is f64}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "or", reverse = false, keep_initial = false, reassociate = false} : (tensor<?xf64>, tensor<1xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @complex(%x: tensor<?xcomplex<f64>>, %h: tensor<1xcomplex<f64>>, %n: index) {
  // expected-error @below {{'max' is not defined for complex numbers here}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "max", reverse = false, keep_initial = false, reassociate = false} : (tensor<?xcomplex<f64>>, tensor<1xcomplex<f64>>, index) -> tensor<?xcomplex<f64>>
  return
}

// -----

func.func @flags(%x: tensor<?xf64>, %h: tensor<1xf64>, %n: index) {
  // expected-error @below {{needs a boolean attribute 'reverse'}}
  %0 = "graphc.linear_recurrence"(%x, %x, %h, %n) {keep_initial = false, reassociate = false} : (tensor<?xf64>, tensor<?xf64>, tensor<1xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @initial(%x: tensor<?xf64>, %h: tensor<2xf64>, %n: index) {
  // expected-error @below {{initial must be a stack of one row: its first dimension must be 1}}
  %0 = "graphc.linear_recurrence"(%x, %x, %h, %n) {reverse = false, keep_initial = false, reassociate = false} : (tensor<?xf64>, tensor<?xf64>, tensor<2xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @rank(%x: tensor<?x3xf64>, %h: tensor<1xf64>, %n: index) {
  // expected-error @below {{operands must have rank 1, like initial}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "add", reverse = false, keep_initial = false, reassociate = false} : (tensor<?x3xf64>, tensor<1xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @row(%x: tensor<?x3xf64>, %h: tensor<1x2xf64>, %n: index) {
  // expected-error @below {{dimension 1 of a row starts as 2, but goes on as 3}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "add", reverse = false, keep_initial = false, reassociate = false} : (tensor<?x3xf64>, tensor<1x2xf64>, index) -> tensor<?x2xf64>
  return
}

// -----

func.func @result(%x: tensor<4xf64>, %h: tensor<1xf64>, %n: index) {
  // expected-error @below {{result dimension 0 must be 5, but is 4}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "add", reverse = false, keep_initial = true, reassociate = false} : (tensor<4xf64>, tensor<1xf64>, index) -> tensor<4xf64>
  return
}

// -----

func.func @elements(%x: tensor<?xf64>, %h: tensor<1xf32>, %n: index) {
  // expected-error @below {{element types must agree, but are f64, f32, f64}}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "add", reverse = false, keep_initial = false, reassociate = false} : (tensor<?xf64>, tensor<1xf32>, index) -> tensor<?xf64>
  return
}
