// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-dot1 %s | filecheck %s

// As in the gradient of a recurrent network: w += outer(h_t, d_t) becomes one product.
// CHECK: graphc.scan
// CHECK-NOT: state = "w"
// CHECK: graphc.scan_end
// CHECK: %[[D:.*]] = "graphc.scan_trace"{{.*}}state = "d"
// CHECK: %[[P:.*]] = "graphc.matmul"(%{{.*}}) {transpose_a = true, transpose_b = false}
// CHECK: graphc.add
func.func @main(%n: index, %hs: tensor<?x16xf64>, %g: tensor<?x16xf64>, %d0: tensor<1x16xf64>, %w0: tensor<1x16x16xf64>) -> tensor<16x16xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %gt = "graphc.scan_seq"(%g, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<16xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<16x16xf64>
    %e = "graphc.add"(%d1, %gt) : (tensor<16xf64>, tensor<16xf64>) -> tensor<16xf64>
    %d2 = "graphc.tanh"(%e) : (tensor<16xf64>) -> tensor<16xf64>
    %a = "graphc.dimshuffle"(%ht) {order = array<i64: 0, -1>} : (tensor<16xf64>) -> tensor<16x1xf64>
    %b = "graphc.dimshuffle"(%d2) {order = array<i64: -1, 0>} : (tensor<16xf64>) -> tensor<1x16xf64>
    %o = "graphc.mul"(%a, %b) : (tensor<16x1xf64>, tensor<1x16xf64>) -> tensor<16x16xf64>
    %w2 = "graphc.add"(%w1, %o) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16xf64>, tensor<16xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16x16xf64>, tensor<16x16xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x16x16xf64>
  %c0 = arith.constant 0 : index
  %r = "graphc.scan_seq"(%ws, %c0) : (tensor<?x16x16xf64>, index) -> tensor<16x16xf64>
  return %r : tensor<16x16xf64>
}
