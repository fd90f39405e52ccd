// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-output %s | filecheck %s

// The states are kept anyway: exp(h_t) @ v is computed from all of them at once.
// CHECK: graphc.scan
// CHECK-NOT: graphc.exp
// CHECK: graphc.scan_end
// CHECK: %[[HS:.*]] = "graphc.scan_trace"{{.*}}state = "h"
// CHECK: %[[H:.*]] = "graphc.slice"(%[[HS]]
// CHECK: %[[E:.*]] = "graphc.exp"(%[[H]])
// CHECK: "graphc.matmul"(%[[E]], %arg2)
func.func @main(%n: index, %h0: tensor<1x4xf64>, %v: tensor<4x3xf64>) -> (tensor<?x4xf64>, tensor<?x3xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %z = "graphc.tanh"(%h) : (tensor<4xf64>) -> tensor<4xf64>
    %a = "graphc.exp"(%z) : (tensor<4xf64>) -> tensor<4xf64>
    %row = "graphc.dimshuffle"(%a) {order = array<i64: -1, 0>} : (tensor<4xf64>) -> tensor<1x4xf64>
    %p = "graphc.matmul"(%row, %v) {transpose_a = false, transpose_b = false} : (tensor<1x4xf64>, tensor<4x3xf64>) -> tensor<1x3xf64>
    %y = "graphc.dimshuffle"(%p) {order = array<i64: 1>} : (tensor<1x3xf64>) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x3xf64>
  return %hs, %ys : tensor<?x4xf64>, tensor<?x3xf64>
}
