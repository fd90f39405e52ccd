// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-merge-inouts %s | filecheck %s

// Two states that start alike and go on alike are one; the output is what the state keeps anyway.
// CHECK: graphc.scan"
// CHECK: %[[Y:.*]] = "graphc.add"
// CHECK-NEXT: "graphc.scan_carry"(%arg1, %[[Y]]){{.*}}state = "a"
// CHECK-NEXT: "graphc.scan_end"
// CHECK: %[[ROWS:.*]] = "graphc.scan_trace"{{.*}}state = "a"
// CHECK: "graphc.slice"(%[[ROWS]]
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<f64>
    %b = "graphc.scan_prev"(%t) {state = "b", tap = -1 : i64} : (index) -> tensor<f64>
    %x1 = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %x2 = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %a1 = "graphc.add"(%a, %x1) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %b1 = "graphc.add"(%b, %x2) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %a1) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%h0, %b1) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%b1) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "sums", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?xf64>
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %as, %ys : tensor<?xf64>, tensor<?xf64>
}
