// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-seq %s | filecheck %s

// x_t @ u in each iteration becomes x @ u before the loop.
// CHECK: %[[P:.*]] = "graphc.matmul"(%arg0, %arg2)
// CHECK: graphc.scan
// CHECK: "graphc.scan_seq"(%[[P]],
// CHECK-NOT: graphc.matmul
func.func @main(%x: tensor<?x3xf64>, %h0: tensor<1x4xf64>, %u: tensor<3x4xf64>) -> tensor<?x4xf64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %row = "graphc.dimshuffle"(%xt) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
    %p = "graphc.matmul"(%row, %u) {transpose_a = false, transpose_b = false} : (tensor<1x3xf64>, tensor<3x4xf64>) -> tensor<1x4xf64>
    %q = "graphc.dimshuffle"(%p) {order = array<i64: 1>} : (tensor<1x4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %q) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}
