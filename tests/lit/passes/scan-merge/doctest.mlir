// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-merge %s | filecheck %s

// The second loop reads the rows of the first as they are made: one loop computes both.
// CHECK: graphc.scan"
// CHECK: %[[H:.*]] = "graphc.add"
// CHECK: %[[Y:.*]] = "graphc.tanh"(%[[H]])
// CHECK-NEXT: "graphc.scan_collect"(%[[Y]])
// CHECK-NOT: graphc.scan"
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %first = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %next = "graphc.add"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "sum", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%first) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %second = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.tanh"(%ht) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "squash", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%second) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}
