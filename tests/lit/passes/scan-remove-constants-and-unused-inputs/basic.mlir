// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-remove-constants-and-unused-inputs --split-input-file %s | filecheck %s

// Two states that only feed each other, and what only they need, are not needed.
// CHECK-LABEL: @cycle
// CHECK-NOT: graphc.exp
// CHECK-NOT: state = "a"
// CHECK-NOT: state = "b"
// CHECK: state = "y"
func.func @cycle(%x: tensor<?xf64>, %a0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<f64>
    %b = "graphc.scan_prev"(%t) {state = "b", tap = -1 : i64} : (index) -> tensor<f64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %e = "graphc.exp"(%b) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%a0, %e) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%a0, %a) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%xt) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "cycle", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}

// -----

// The result of an inner loop is read by a state that nobody reads: the inner loop disappears with it.
// CHECK-LABEL: @nested
// CHECK: graphc.scan"
// CHECK-NOT: graphc.scan"
// CHECK: return
func.func @nested(%x: tensor<?xf64>, %a0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %c2 = arith.constant 2 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %inner = "graphc.scan"(%c2) ({
    ^bb0(%u: index):
      %b = "graphc.scan_prev"(%u) {state = "b", tap = -1 : i64} : (index) -> tensor<f64>
      %p = "graphc.mul"(%b, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "graphc.scan_carry"(%a0, %p) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {name = "inner", reverse = false} : (index) -> !graphc.loop
    %bs = "graphc.scan_trace"(%inner) {state = "b"} : (!graphc.loop) -> tensor<1xf64>
    %last = "graphc.dimshuffle"(%bs) {order = array<i64>} : (tensor<1xf64>) -> tensor<f64>
    "graphc.scan_carry"(%a0, %last) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%xt) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}

// -----

// The oldest tap is not read and only new rows are kept: the window shrinks, and with it the initial rows.
// CHECK-LABEL: @window
// CHECK: %[[INITIAL:.*]] = "graphc.slice"(%arg0{{.*}} -> tensor<1xf64>
// CHECK: "graphc.scan_carry"(%[[INITIAL]]{{.*}}taps = array<i64: -1>
func.func @window(%h0: tensor<3xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %old = "graphc.scan_prev"(%t) {state = "h", tap = -3 : i64} : (index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -3, -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<3xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "window", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// With its initial rows kept, the window stays.
// CHECK-LABEL: @kept
// CHECK: "graphc.scan_carry"(%arg0{{.*}}taps = array<i64: -3, -1>
func.func @kept(%h0: tensor<3xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -3, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<3xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "kept", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// Nobody reads the state: its new rows are an output.
// CHECK-LABEL: @output
// CHECK-NOT: graphc.scan_carry
// CHECK: graphc.scan_collect{{.*}}state = "h"
func.func @output(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    "graphc.scan_carry"(%h0, %xt) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "output", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// Zeros stay zeros: neither state of this derivative changes, and its trace is a broadcast.
// CHECK-LABEL: @zeros
// CHECK-NOT: graphc.scan"
// CHECK: graphc.broadcast_to
// CHECK-NOT: graphc.scan"
func.func @zeros(%n: index) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<1xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<f64>
    %b = "graphc.scan_prev"(%t) {state = "b", tap = -1 : i64} : (index) -> tensor<f64>
    %c = "graphc.add"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%zero, %c) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%zero, %a) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "zeros", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?xf64>
  return %as : tensor<?xf64>
}

// -----

// Rows of a broadcast are what was broadcast; rows of iota are computed.
// CHECK-LABEL: @sequences
// CHECK: graphc.scan"
// CHECK-NOT: graphc.scan_seq
// CHECK: %[[STEP:.*]] = "graphc.mul"
// CHECK: %[[I:.*]] = "graphc.add"(%{{.*}}, %[[STEP]])
// CHECK: "graphc.mul"(%arg0, %[[I]])
func.func @sequences(%v: tensor<f64>, %n: index) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  %vs = "graphc.broadcast_to"(%v, %n) : (tensor<f64>, index) -> tensor<?xf64>
  %is = "graphc.iota"(%zero, %one, %n) : (tensor<f64>, tensor<f64>, index) -> tensor<?xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %vt = "graphc.scan_seq"(%vs, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %it = "graphc.scan_seq"(%is, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.mul"(%vt, %it) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "sequences", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}

// -----

// A condition that never holds is dropped; the number of steps is then the bound.
// CHECK-LABEL: @condition
// CHECK: "graphc.scan_end"()
// CHECK: return %{{.*}}, %arg1
func.func @condition(%x: tensor<?xf64>, %n: index) -> (tensor<?xf64>, index) {
  %false = arith.constant false
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    "graphc.scan_collect"(%xt) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"(%false) : (i1) -> ()
  }) {name = "condition", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %taken = "graphc.scan_steps"(%s) : (!graphc.loop) -> index
  return %ys, %taken : tensor<?xf64>, index
}

// -----

// What a conditional in the body reads is needed; one that nobody reads goes, with the state it reads.
// CHECK-LABEL: @conditional
// CHECK: state = "h"
// CHECK: scf.if
// CHECK: graphc.exp
// CHECK-NOT: graphc.sin
// CHECK-NOT: state = "g"
// CHECK: return
func.func @conditional(%x: tensor<1x3xf64>, %c: tensor<i1>, %n: index) -> tensor<?x3xf64> {
  %p = tensor.extract %c[] : tensor<i1>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    %g = "graphc.scan_prev"(%t) {state = "g", tap = -1 : i64} : (index) -> tensor<3xf64>
    %a = scf.if %p -> tensor<3xf64> {
      %e = "graphc.exp"(%h) : (tensor<3xf64>) -> tensor<3xf64>
      scf.yield %e : tensor<3xf64>
    } else {
      scf.yield %h : tensor<3xf64>
    }
    %b = scf.if %p -> tensor<3xf64> {
      %e = "graphc.sin"(%g) : (tensor<3xf64>) -> tensor<3xf64>
      scf.yield %e : tensor<3xf64>
    } else {
      scf.yield %g : tensor<3xf64>
    }
    "graphc.scan_carry"(%x, %a) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"}
      : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_carry"(%x, %b) {state = "g", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"}
      : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "s", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  return %0 : tensor<?x3xf64>
}
