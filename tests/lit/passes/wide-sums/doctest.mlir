// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-wide-sums %s | filecheck %s

// The sum of a float32 vector is accumulated in float64.
// CHECK: %[[W:.*]] = "graphc.cast"(%arg0) : (tensor<?xf32>) -> tensor<?xf64>
// CHECK: %[[S:.*]] = "graphc.reduce_sum"(%[[W]])
// CHECK: "graphc.cast"(%[[S]]) : (tensor<f64>) -> tensor<f32>
func.func @main(%x: tensor<?xf32>) -> tensor<f32> {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
