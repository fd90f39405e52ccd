// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @batch
func.func @batch(%state: tensor<6xui64>, %loc: tensor<?x3xf64>, %scale: tensor<1x1xf64>, %n: index) -> (tensor<?x3xf64>, tensor<6xui64>) {
  %c3 = arith.constant 3 : index
  // CHECK: "graphc.random"(%{{.*}}) {cores = array<i64: 0, 0>, distribution = "normal"
  %x, %next = "graphc.random"(%state, %loc, %scale, %n, %c3) {distribution = "normal", cores = array<i64: 0, 0>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 2>} : (tensor<6xui64>, tensor<?x3xf64>, tensor<1x1xf64>, index, index) -> (tensor<?x3xf64>, tensor<6xui64>)
  return %x, %next : tensor<?x3xf64>, tensor<6xui64>
}

// CHECK-LABEL: func.func @vectors
func.func @vectors(%state: tensor<13xui64>, %p: tensor<?x4xf64>, %n: index) -> tensor<?xi64> {
  // CHECK: "graphc.random"(%{{.*}}) {{.*}} -> (tensor<?xi64>, tensor<13xui64>)
  %x, %next = "graphc.random"(%state, %p, %n) {distribution = "categorical", cores = array<i64: 1>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (tensor<13xui64>, tensor<?x4xf64>, index) -> (tensor<?xi64>, tensor<13xui64>)
  return %x : tensor<?xi64>
}

// CHECK-LABEL: func.func @permutation
func.func @permutation(%state: tensor<6xui64>, %n: index) -> tensor<?xi64> {
  // CHECK: "graphc.random"(%{{.*}}) {cores = array<i64>
  %x, %next = "graphc.random"(%state, %n) {distribution = "permutation", cores = array<i64>, support = 1 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (tensor<6xui64>, index) -> (tensor<?xi64>, tensor<6xui64>)
  return %x : tensor<?xi64>
}
