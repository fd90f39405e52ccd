// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-stabilize %s | filecheck %s

// log(sum(exp(x))) is shifted by the largest element (0 where that is infinite), so that exp(1000) does no harm.
// CHECK: %[[M:.*]] = "graphc.reduce_max"(%arg0) {allow_empty = true, axes = array<i64: 0>}
// CHECK: %[[F:.*]] = "graphc.isfinite"(%[[M]])
// CHECK: %[[S:.*]] = "graphc.switch"(%[[F]], %[[M]]
// CHECK: "graphc.sub"(%arg0
// CHECK: "graphc.exp"
// CHECK: "graphc.reduce_sum"
// CHECK: %[[L:.*]] = "graphc.log"
// CHECK: "graphc.add"(%[[L]], %[[S]])
func.func @main(%x: tensor<?xf64>) -> tensor<f64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.log"(%1) : (tensor<f64>) -> tensor<f64>
  return %2 : tensor<f64>
}
