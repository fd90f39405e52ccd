// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-remove-constants-and-unused-inputs %s | filecheck %s

// The count only feeds itself, and the rate keeps its first row: one state is left.
// CHECK: graphc.scan
// CHECK: %[[H:.*]] = "graphc.scan_prev"{{.*}}state = "h"
// CHECK-NEXT: %[[Y:.*]] = "graphc.mul"(%[[H]], %arg1)
// CHECK-NEXT: "graphc.scan_carry"(%arg0, %[[Y]]){{.*}}state = "h"
// CHECK-NEXT: "graphc.scan_end"
func.func @main(%h0: tensor<1xf64>, %rate: tensor<f64>, %n: index) -> tensor<?xf64> {
  %c0 = arith.constant dense<0> : tensor<1xi64>
  %one = arith.constant dense<1> : tensor<i64>
  %r0 = "graphc.dimshuffle"(%rate) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %r = "graphc.scan_prev"(%t) {state = "rate", tap = -1 : i64} : (index) -> tensor<f64>
    %c = "graphc.scan_prev"(%t) {state = "count", tap = -1 : i64} : (index) -> tensor<i64>
    %y = "graphc.mul"(%h, %r) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %next = "graphc.add"(%c, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%r0, %r) {state = "rate", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%c0, %next) {state = "count", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xi64>, tensor<i64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "decay", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}
