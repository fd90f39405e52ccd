// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-to-reduce %s | filecheck %s

// A sum of squares, of which nobody sees the partial sums.
// CHECK-NOT: graphc.scan
// CHECK: %[[Y:.*]] = "graphc.mul"{{.*}} -> tensor<?xf64>
// CHECK: "graphc.reduce_sum"(%[[Y]]) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.mul"(%xt, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %next = "graphc.add"(%h, %y) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "main", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}
