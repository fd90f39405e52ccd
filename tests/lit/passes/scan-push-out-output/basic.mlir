// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-output %s --split-input-file | filecheck %s

// What is kept instead of the output is not larger than it.
// CHECK-LABEL: @adds_new_rows
// CHECK: %[[S:.*]] = "graphc.sin"
// CHECK-NOT: graphc.exp
// CHECK: graphc.scan_end
// CHECK: %[[T:.*]] = "graphc.scan_trace"{{.*}}state = "h"
// CHECK: graphc.exp
func.func @adds_new_rows(%n: index, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %z = "graphc.sin"(%h) : (tensor<4xf64>) -> tensor<4xf64>
    %y = "graphc.exp"(%z) : (tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x4xf64>
  return %ys : tensor<?x4xf64>
}

// -----

// Four numbers would have to be kept for one.
// CHECK-LABEL: @larger_rows
// CHECK: graphc.exp
// CHECK: graphc.scan_collect
func.func @larger_rows(%n: index, %h0: tensor<1x4xf64>) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %z = "graphc.tanh"(%h) : (tensor<4xf64>) -> tensor<4xf64>
    %e = "graphc.exp"(%z) : (tensor<4xf64>) -> tensor<4xf64>
    %y = "graphc.reduce_sum"(%e) {axes = array<i64: 0>} : (tensor<4xf64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}

// -----

// Arithmetic on what the state needs anyway.
// CHECK-LABEL: @needed
// CHECK: graphc.mul
// CHECK: graphc.scan_collect
func.func @needed(%n: index, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %z = "graphc.tanh"(%h) : (tensor<4xf64>) -> tensor<4xf64>
    %e = "graphc.exp"(%z) : (tensor<4xf64>) -> tensor<4xf64>
    %y = "graphc.mul"(%e, %e) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x4xf64>
  return %ys : tensor<?x4xf64>
}

// -----

// A state that only adds up.
// CHECK-LABEL: @sum
// CHECK: graphc.scan
// CHECK-NOT: graphc.scan_carry
// CHECK: graphc.scan_end
// CHECK: %[[S0:.*]] = "graphc.dimshuffle"(%arg2)
// CHECK: %[[SUM:.*]] = "graphc.reduce_sum"(%{{.*}}) {axes = array<i64: 0>}
// CHECK: "graphc.add"(%[[S0]], %[[SUM]])
func.func @sum(%n: index, %x: tensor<?x4xf64>, %s0: tensor<1x4xf64>) -> tensor<4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %s1 = "graphc.scan_prev"(%t) {state = "s", tap = -1 : i64} : (index) -> tensor<4xf64>
    %s2 = "graphc.add"(%s1, %xt) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%s0, %s2) {state = "s", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %c0 = arith.constant 0 : index
  %ss = "graphc.scan_trace"(%s) {state = "s"} : (!graphc.loop) -> tensor<?x4xf64>
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %ss, %c0 : tensor<?x4xf64>
  %last = arith.subi %rows, %c1 : index
  %r = "graphc.scan_seq"(%ss, %last) : (tensor<?x4xf64>, index) -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

// trace[1:][-1:] is the last row as well.
// CHECK-LABEL: @slices
// CHECK-NOT: graphc.scan_carry
// CHECK: graphc.reduce_sum
func.func @slices(%n: index, %x: tensor<?x4xf64>, %s0: tensor<1x4xf64>) -> tensor<1x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %s1 = "graphc.scan_prev"(%t) {state = "s", tap = -1 : i64} : (index) -> tensor<4xf64>
    %s2 = "graphc.add"(%s1, %xt) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%s0, %s2) {state = "s", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %c0 = arith.constant 0 : index
  %ss = "graphc.scan_trace"(%s) {state = "s"} : (!graphc.loop) -> tensor<?x4xf64>
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %rows = tensor.dim %ss, %c0 : tensor<?x4xf64>
  %one = arith.minsi %c1, %rows : index
  %rest = arith.subi %rows, %one : index
  %tail = "graphc.slice"(%ss, %one, %c0, %rest, %c4, %c1, %c1) : (tensor<?x4xf64>, index, index, index, index, index, index) -> tensor<?x4xf64>
  %count = tensor.dim %tail, %c0 : tensor<?x4xf64>
  %last = arith.subi %count, %c1 : index
  %r = "graphc.slice"(%tail, %last, %c0, %c1, %c4, %c1, %c1) : (tensor<?x4xf64>, index, index, index, index, index, index) -> tensor<1x4xf64>
  return %r : tensor<1x4xf64>
}

// -----

// With reverse the last row is stored first.
// CHECK-LABEL: @reversed
// CHECK-NOT: graphc.scan_carry
// CHECK: graphc.reduce_sum
func.func @reversed(%n: index, %x: tensor<?x4xf64>, %s0: tensor<1x4xf64>) -> tensor<4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %s1 = "graphc.scan_prev"(%t) {state = "s", tap = -1 : i64} : (index) -> tensor<4xf64>
    %s2 = "graphc.add"(%s1, %xt) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%s0, %s2) {state = "s", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %c0 = arith.constant 0 : index
  %ss = "graphc.scan_trace"(%s) {state = "s"} : (!graphc.loop) -> tensor<?x4xf64>
  %r = "graphc.scan_seq"(%ss, %c0) : (tensor<?x4xf64>, index) -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

// Not the last row.
// CHECK-LABEL: @first_row
// CHECK: graphc.scan_carry
func.func @first_row(%n: index, %x: tensor<?x4xf64>, %s0: tensor<1x4xf64>) -> tensor<4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %s1 = "graphc.scan_prev"(%t) {state = "s", tap = -1 : i64} : (index) -> tensor<4xf64>
    %s2 = "graphc.add"(%s1, %xt) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%s0, %s2) {state = "s", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %c0 = arith.constant 0 : index
  %ss = "graphc.scan_trace"(%s) {state = "s"} : (!graphc.loop) -> tensor<?x4xf64>
  %r = "graphc.scan_seq"(%ss, %c0) : (tensor<?x4xf64>, index) -> tensor<4xf64>
  return %r : tensor<4xf64>
}

// -----

// Time and the summed dimension become one.
// CHECK-LABEL: @product_of_rows
// CHECK-NOT: graphc.scan_carry
// CHECK: "graphc.matmul"{{.*}}transpose_a = true{{.*}}(tensor<?x2xf64>, tensor<?x4xf64>) -> tensor<2x4xf64>
func.func @product_of_rows(%n: index, %x: tensor<?x2x3xf64>, %y: tensor<?x3x4xf64>, %s0: tensor<1x2x4xf64>) -> tensor<2x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x2x3xf64>, index) -> tensor<2x3xf64>
    %yt = "graphc.scan_seq"(%y, %t) : (tensor<?x3x4xf64>, index) -> tensor<3x4xf64>
    %s1 = "graphc.scan_prev"(%t) {state = "s", tap = -1 : i64} : (index) -> tensor<2x4xf64>
    %p = "graphc.matmul"(%xt, %yt) {transpose_a = false, transpose_b = false} : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>
    %s2 = "graphc.add"(%s1, %p) : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
    "graphc.scan_carry"(%s0, %s2) {state = "s", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x2x4xf64>, tensor<2x4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %c0 = arith.constant 0 : index
  %ss = "graphc.scan_trace"(%s) {state = "s"} : (!graphc.loop) -> tensor<?x2x4xf64>
  %r = "graphc.scan_seq"(%ss, %c0) : (tensor<?x2x4xf64>, index) -> tensor<2x4xf64>
  return %r : tensor<2x4xf64>
}
