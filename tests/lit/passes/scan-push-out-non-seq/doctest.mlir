// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-non-seq %s | filecheck %s

// exp(a) is the same in every iteration, so it is computed once, before the loop.
// CHECK: %[[RATE:.*]] = "graphc.exp"(%arg2)
// CHECK: graphc.scan"
// CHECK-NOT: graphc.exp
// CHECK: "graphc.mul"(%[[RATE]], %{{.*}})
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>, %a: tensor<f64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %rate = "graphc.exp"(%a) : (tensor<f64>) -> tensor<f64>
    %decay = "graphc.mul"(%rate, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %y = "graphc.add"(%decay, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "filter", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}
