// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-save-mem --canonicalize %s | filecheck %s

// `h[1:][-1]`: whatever the length, the last row is all that is read, so one row is kept.
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "last", rows = 1 : i64
// CHECK: %[[H:.*]] = "graphc.scan_trace"({{.*}}) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
// CHECK-NEXT: return %[[H]]
func.func @main(%n: index, %h0: tensor<1xf64>) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.exp"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "decay", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c1, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  %last = arith.subi %n, %c1 : index
  %1 = "graphc.slice"(%0, %last, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %1 : tensor<1xf64>
}
