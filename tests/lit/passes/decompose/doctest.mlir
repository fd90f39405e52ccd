// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-decompose %s | filecheck %s

// Softmax of a vector: exp(x - max(x)) times the reciprocal of its sum.
// CHECK: "graphc.reduce_max"
// CHECK: "graphc.sub"
// CHECK: %[[E:.*]] = "graphc.exp"
// CHECK: "graphc.reduce_sum"(%[[E]])
// CHECK: "graphc.mul"(%[[E]]
// CHECK-NOT: graphc.softmax
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.softmax"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
