// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-inplace --split-input-file %s | filecheck %s

// What was computed for this state alone, here seen with a leading axis of size 1.
// CHECK-LABEL: @computed
// CHECK: graphc.scan_carry
// CHECK-SAME: inplace
func.func @computed(%n: index, %x: tensor<3xf64>) -> tensor<?x3xf64> {
  %0 = "graphc.exp"(%x) : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %p0 = "graphc.scan_prev"(%t) {state = "h0", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%1, %p0) {state = "h0", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h0"} : (!graphc.loop) -> tensor<?x3xf64>
  return %hs : tensor<?x3xf64>
}

// -----

// An argument belongs to the caller, however it is seen.
// CHECK-LABEL: @argument
// CHECK-NOT: inplace
func.func @argument(%n: index, %x: tensor<3xf64>, %y: tensor<1x3xf64>) -> tensor<?x3xf64> {
  %1 = "graphc.dimshuffle"(%x) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %p0 = "graphc.scan_prev"(%t) {state = "h0", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%1, %p0) {state = "h0", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    %p1 = "graphc.scan_prev"(%t) {state = "h1", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%y, %p1) {state = "h1", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h0"} : (!graphc.loop) -> tensor<?x3xf64>
  return %hs : tensor<?x3xf64>
}

// -----

// Literals are read only, and what is used again must stay: by two states, or after the loop.
// CHECK-LABEL: @others
// CHECK-NOT: inplace
func.func @others(%n: index, %x: tensor<1x3xf64>) -> (tensor<?x3xf64>, tensor<1x3xf64>) {
  %c = arith.constant dense<0.0> : tensor<1x3xf64>
  %0 = "graphc.exp"(%x) : (tensor<1x3xf64>) -> tensor<1x3xf64>
  %1 = "graphc.log"(%x) : (tensor<1x3xf64>) -> tensor<1x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %p0 = "graphc.scan_prev"(%t) {state = "h0", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%c, %p0) {state = "h0", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    %p1 = "graphc.scan_prev"(%t) {state = "h1", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%0, %p1) {state = "h1", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    %p2 = "graphc.scan_prev"(%t) {state = "h2", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%0, %p2) {state = "h2", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    %p3 = "graphc.scan_prev"(%t) {state = "h3", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%1, %p3) {state = "h3", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h0"} : (!graphc.loop) -> tensor<?x3xf64>
  return %hs, %1 : tensor<?x3xf64>, tensor<1x3xf64>
}

// -----

// The inner loop runs many times, but its initial rows are computed once.
// CHECK-LABEL: @nested
// CHECK-NOT: inplace
func.func @nested(%n: index, %x: tensor<1x3xf64>) -> tensor<?x1x3xf64> {
  %0 = "graphc.exp"(%x) : (tensor<1x3xf64>) -> tensor<1x3xf64>
  %outer = "graphc.scan"(%n) ({
  ^bb0(%u: index):
    %s = "graphc.scan"(%n) ({
    ^bb0(%t: index):
      %p = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
      "graphc.scan_carry"(%0, %p) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {name = "inner", reverse = false} : (index) -> !graphc.loop
    %h = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x3xf64>
    "graphc.scan_collect"(%h) {state = "y", keep = "steps"} : (tensor<1x3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  %y = "graphc.scan_trace"(%outer) {state = "y"} : (!graphc.loop) -> tensor<?x1x3xf64>
  return %y : tensor<?x1x3xf64>
}

// -----

// Values that lie in parts of the initial rows: their own loop reads them in registers.
// CHECK-LABEL: @parts(
// CHECK: graphc.scan_carry
// CHECK-SAME: inplace
func.func @parts(%n: index, %x: tensor<3xf64>) -> (tensor<1x3xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.exp"(%x) {cluster = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "graphc.sin"(%0) {cluster = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %c3 = arith.constant 3 : index
  %b = "graphc.write_buffer"(%c2, %c3) {type = tensor<2x3xf64>} : (index, index) -> !graphc.buffer
  %p:2 = "graphc.write_split"(%b, %c1, %c1) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %v0 = "graphc.write_view"(%p#0) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %v1 = "graphc.write_view"(%p#1) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %t0 = "graphc.write"(%0, %v0) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %t1 = "graphc.write"(%1, %v1) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %j = "graphc.write_join"(%b, %t0, %t1) : (!graphc.buffer, !graphc.token, !graphc.token) -> tensor<2x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "h", tap = -2 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%j, %a) {state = "h", taps = array<i64: -2>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %h = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x3xf64>
  return %h : tensor<1x3xf64>
}

// -----

// One of them is read by another loop, which need not be over when this one starts.
// CHECK-LABEL: @parts_that_others_read
// CHECK-NOT: inplace
func.func @parts_that_others_read(%n: index, %x: tensor<3xf64>) -> (tensor<1x3xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.exp"(%x) {cluster = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "graphc.sin"(%0) {cluster = 1 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %c3 = arith.constant 3 : index
  %b = "graphc.write_buffer"(%c2, %c3) {type = tensor<2x3xf64>} : (index, index) -> !graphc.buffer
  %p:2 = "graphc.write_split"(%b, %c1, %c1) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %v0 = "graphc.write_view"(%p#0) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %v1 = "graphc.write_view"(%p#1) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %t0 = "graphc.write"(%0, %v0) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %t1 = "graphc.write"(%1, %v1) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %j = "graphc.write_join"(%b, %t0, %t1) : (!graphc.buffer, !graphc.token, !graphc.token) -> tensor<2x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "h", tap = -2 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%j, %a) {state = "h", taps = array<i64: -2>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %h = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x3xf64>
  return %h : tensor<1x3xf64>
}

// -----

// One of them is a result, which is copied after the loop.
// CHECK-LABEL: @parts_that_are_results
// CHECK-NOT: inplace
func.func @parts_that_are_results(%n: index, %x: tensor<3xf64>) -> (tensor<1x3xf64>, tensor<3xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.exp"(%x) {cluster = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "graphc.sin"(%0) {cluster = 0 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %c3 = arith.constant 3 : index
  %b = "graphc.write_buffer"(%c2, %c3) {type = tensor<2x3xf64>} : (index, index) -> !graphc.buffer
  %p:2 = "graphc.write_split"(%b, %c1, %c1) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %v0 = "graphc.write_view"(%p#0) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %v1 = "graphc.write_view"(%p#1) {order = array<i64: 1>, type = tensor<3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %t0 = "graphc.write"(%0, %v0) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %t1 = "graphc.write"(%1, %v1) : (tensor<3xf64>, !graphc.buffer) -> !graphc.token
  %j = "graphc.write_join"(%b, %t0, %t1) : (!graphc.buffer, !graphc.token, !graphc.token) -> tensor<2x3xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "h", tap = -2 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%j, %a) {state = "h", taps = array<i64: -2>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %h = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x3xf64>
  return %h, %1 : tensor<1x3xf64>, tensor<3xf64>
}
