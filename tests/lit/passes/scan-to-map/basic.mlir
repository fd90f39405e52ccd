// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-to-map --split-input-file %s | filecheck %s

// The output leaves the loop; the state stays and reads what is computed already.
// CHECK-LABEL: @part
// CHECK: %[[Y:.*]] = "graphc.exp"(%{{.*}}) : (tensor<?xf64>) -> tensor<?xf64>
// CHECK: "graphc.scan"
// CHECK-NOT: graphc.exp
// CHECK: "graphc.scan_seq"(%[[Y]],
// CHECK: graphc.scan_carry
// CHECK-NOT: graphc.scan_collect
// CHECK-NOT: parallel
func.func @part(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.exp"(%xt) : (tensor<f64>) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %z = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    %next = "graphc.add"(%z, %y) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "part", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %1 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %0, %1 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Of the last two rows, just these are computed; backwards, the most recent ones are the first.
// CHECK-LABEL: @last
// CHECK-NOT: graphc.scan
// CHECK: %[[ROWS:.*]] = "graphc.slice"{{.*}} -> tensor<2xf64>
// CHECK: "graphc.exp"(%[[ROWS]]) : (tensor<2xf64>) -> tensor<2xf64>
func.func @last(%x: tensor<?xf64>, %n: index) -> tensor<2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.exp"(%xt) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "last", rows = 2 : i64} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "last", reverse = true} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}

// -----

// Rows gathered from rows have no batched form: the loop stays, but its iterations are independent.
// CHECK-LABEL: @gather
// CHECK: "graphc.scan"
// CHECK: graphc.take
// CHECK: parallel
func.func @gather(%x: tensor<?x4xf64>, %i: tensor<?x2xi64>, %n: index) -> tensor<?x2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %it = "graphc.scan_seq"(%i, %t) : (tensor<?x2xi64>, index) -> tensor<2xi64>
    %y = "graphc.take"(%xt, %it) {axis = 0 : i64} : (tensor<4xf64>, tensor<2xi64>) -> tensor<2xf64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<2xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "gather", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x2xf64>
  return %0 : tensor<?x2xf64>
}

// -----

// How many rows there will be is not known before the loop has run.
// CHECK-LABEL: @until
// CHECK: graphc.scan_collect
// CHECK-NOT: parallel
func.func @until(%x: tensor<?xf64>, %n: index) -> tensor<?xf64> {
  %c3 = arith.constant 3 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.exp"(%xt) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    %stop = arith.cmpi eq, %t, %c3 : index
    "graphc.scan_end"(%stop) : (i1) -> ()
  }) {name = "until", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
