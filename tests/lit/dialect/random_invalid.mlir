// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @state(%state: tensor<5xui64>, %n: index) {
  // expected-error @below {{the state must be a vector of 6 or 13 words of type ui64, but is tensor<5xui64>}}
  %x, %next = "graphc.random"(%state, %n) {distribution = "standard_normal", cores = array<i64>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (tensor<5xui64>, index) -> (tensor<?xf64>, tensor<5xui64>)
  return
}

// -----

func.func @after(%state: tensor<6xui64>, %n: index) {
  // expected-error @below {{the state after must be of type tensor<6xui64>, but is tensor<13xui64>}}
  %x, %next = "graphc.random"(%state, %n) {distribution = "standard_normal", cores = array<i64>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (tensor<6xui64>, index) -> (tensor<?xf64>, tensor<13xui64>)
  return
}

// -----

func.func @sizes(%state: tensor<6xui64>, %n: index) {
  // expected-error @below {{needs one size for each of 2 dimensions, but has 1}}
  %x, %next = "graphc.random"(%state, %n) {distribution = "standard_normal", cores = array<i64>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (tensor<6xui64>, index) -> (tensor<?x?xf64>, tensor<6xui64>)
  return
}

// -----

func.func @rank(%state: tensor<6xui64>, %p: tensor<?xf64>, %n: index) {
  // expected-error @below {{parameter 0 must have rank 1 + 1, but has 1}}
  %x, %next = "graphc.random"(%state, %p, %n) {distribution = "categorical", cores = array<i64: 1>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (tensor<6xui64>, tensor<?xf64>, index) -> (tensor<?xi64>, tensor<6xui64>)
  return
}

// -----

func.func @shape(%state: tensor<6xui64>, %a: tensor<3xf64>, %n: index) {
  // expected-error @below {{parameter 0 has size 3 in dimension 0, the draws have 4}}
  %x, %next = "graphc.random"(%state, %a, %n) {distribution = "chisquare", cores = array<i64: 0>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (tensor<6xui64>, tensor<3xf64>, index) -> (tensor<4xf64>, tensor<6xui64>)
  return
}

// -----

func.func @support(%state: tensor<6xui64>, %n: index) {
  // expected-error @below {{needs an integer attribute 'support' that is 0 or 1}}
  %x, %next = "graphc.random"(%state, %n) {distribution = "permutation", cores = array<i64>, support = 2 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (tensor<6xui64>, index) -> (tensor<?xi64>, tensor<6xui64>)
  return
}
