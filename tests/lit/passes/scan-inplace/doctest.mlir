// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-inplace %s | filecheck %s

// exp(x) is computed for the state alone, so the state may live there; y is the caller's.
// CHECK: "graphc.scan_carry"(%0, {{.*}}inplace{{.*}}state = "h0"
// CHECK: "graphc.scan_carry"(%arg2,
// CHECK-NOT: inplace
func.func @main(%n: index, %x: tensor<1x3xf64>, %y: tensor<1x3xf64>) -> tensor<?x3xf64> {
  %0 = "graphc.exp"(%x) : (tensor<1x3xf64>) -> tensor<1x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %p0 = "graphc.scan_prev"(%t) {state = "h0", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%0, %p0) {state = "h0", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    %p1 = "graphc.scan_prev"(%t) {state = "h1", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%y, %p1) {state = "h1", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h0"} : (!graphc.loop) -> tensor<?x3xf64>
  return %hs : tensor<?x3xf64>
}
