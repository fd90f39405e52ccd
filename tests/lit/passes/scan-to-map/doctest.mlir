// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-to-map %s | filecheck %s

// tanh(x[t] @ u) of each row: no iteration needs another one, so the loop becomes one product and one sweep.
// CHECK-NOT: graphc.scan
// CHECK: graphc.matmul{{.*}}(tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
// CHECK: graphc.tanh{{.*}}(tensor<?x2xf64>) -> tensor<?x2xf64>
func.func @main(%x: tensor<?x3xf64>, %u: tensor<3x2xf64>, %n: index) -> tensor<?x2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    %row = "graphc.dimshuffle"(%xt) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
    %p = "graphc.matmul"(%row, %u) {transpose_a = false, transpose_b = false} : (tensor<1x3xf64>, tensor<3x2xf64>) -> tensor<1x2xf64>
    %q = "graphc.dimshuffle"(%p) {order = array<i64: 1>} : (tensor<1x2xf64>) -> tensor<2xf64>
    %y = "graphc.tanh"(%q) : (tensor<2xf64>) -> tensor<2xf64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<2xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "rows", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x2xf64>
  return %0 : tensor<?x2xf64>
}
