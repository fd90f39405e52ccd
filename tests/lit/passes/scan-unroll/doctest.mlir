// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-unroll --canonicalize %s | filecheck %s

// h = h * x[t] for three steps, of which the last row is kept: three products.
// CHECK: %[[A:.*]] = "graphc.mul"
// CHECK: %[[B:.*]] = "graphc.mul"(%[[A]],
// CHECK: %[[C:.*]] = "graphc.mul"(%[[B]],
// CHECK: %[[H:.*]] = "graphc.dimshuffle"(%[[C]]) {order = array<i64: -1>}
// CHECK-NEXT: return %[[H]]
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<1xf64> {
  %n = arith.constant 3 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %hs : tensor<1xf64>
}
