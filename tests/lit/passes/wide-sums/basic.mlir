// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-wide-sums %s --split-input-file | filecheck %s

// Each narrow type has its wide one.
// CHECK-LABEL: @types
// CHECK: %[[A:.*]] = "graphc.cast"(%arg0) : (tensor<?xf16>) -> tensor<?xf32>
// CHECK-NEXT: %[[B:.*]] = "graphc.reduce_sum"(%[[A]])
// CHECK-NEXT: "graphc.cast"(%[[B]]) : (tensor<f32>) -> tensor<f16>
// CHECK-NEXT: "graphc.cast"(%arg1) : (tensor<?x4xcomplex<f32>>) -> tensor<?x4xcomplex<f64>>
// CHECK-NEXT: "graphc.reduce_prod"{{.*}} -> tensor<?xcomplex<f64>>
// CHECK-NEXT: "graphc.cast"{{.*}} -> tensor<?xcomplex<f32>>
func.func @types(%x: tensor<?xf16>, %y: tensor<?x4xcomplex<f32>>) -> (tensor<f16>, tensor<?xcomplex<f32>>) {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf16>) -> tensor<f16>
  %1 = "graphc.reduce_prod"(%y) {axes = array<i64: 1>} : (tensor<?x4xcomplex<f32>>) -> tensor<?xcomplex<f32>>
  return %0, %1 : tensor<f16>, tensor<?xcomplex<f32>>
}

// -----

// What is wide, an integer, an extreme, marked as narrow, or a sum of two numbers stays.
// CHECK-LABEL: @stay
// CHECK-NOT: graphc.cast
// CHECK: return
func.func @stay(%x: tensor<?xf64>, %i: tensor<?xi32>, %y: tensor<?xf32>, %z: tensor<?x2xf32>)
    -> (tensor<f64>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<?xf32>) {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %1 = "graphc.reduce_sum"(%i) {axes = array<i64: 0>} : (tensor<?xi32>) -> tensor<i32>
  %2 = "graphc.reduce_max"(%y) {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
  %3 = "graphc.reduce_sum"(%y) {axes = array<i64: 0>, narrow} : (tensor<?xf32>) -> tensor<f32>
  %4 = "graphc.reduce_sum"(%z) {axes = array<i64: 1>} : (tensor<?x2xf32>) -> tensor<?xf32>
  return %0, %1, %2, %3, %4 : tensor<f64>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<?xf32>
}
