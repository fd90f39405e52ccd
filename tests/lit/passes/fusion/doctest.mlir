// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion %s | filecheck %s

// exp(x) * y and its sum: one sweep over x and y computes both results.
// CHECK: graphc.exp{{.*}}cluster = 0
// CHECK: graphc.mul{{.*}}cluster = 0
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> (tensor<?xf64>, tensor<f64>) {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.mul"(%0, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %1, %2 : tensor<?xf64>, tensor<f64>
}
