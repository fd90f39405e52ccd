// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-unroll --canonicalize --split-input-file %s | filecheck %s

// All rows: the initial one and those of the iterations.
// CHECK-LABEL: @two
// CHECK-NOT: "graphc.scan"
// CHECK: %[[A:.*]] = "graphc.mul"
// CHECK: %[[B:.*]] = "graphc.mul"(%[[A]],
// CHECK: "graphc.join"
// CHECK-SAME: axis = 0
func.func @two(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 2 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// Backwards, the second iteration is stored first.
// CHECK-LABEL: @backwards
// CHECK: %[[A:.*]] = "graphc.mul"
// CHECK: %[[B:.*]] = "graphc.mul"(%[[A]],
// CHECK-DAG: %[[A1:.*]] = "graphc.dimshuffle"(%[[A]])
// CHECK-DAG: %[[B1:.*]] = "graphc.dimshuffle"(%[[B]])
// CHECK-DAG: %[[A2:.*]] = tensor.cast %[[A1]]
// CHECK-DAG: %[[B2:.*]] = tensor.cast %[[B1]]
// CHECK: "graphc.join"(%[[B2]], %[[A2]])
func.func @backwards(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 2 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// No steps: the initial rows.
// CHECK-LABEL: @none
// CHECK-NEXT: %[[H:.*]] = tensor.cast %arg1
// CHECK-NEXT: return %[[H]]
func.func @none(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 0 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// Too many steps, unless they are asked for.
// CHECK-LABEL: @many
// CHECK: "graphc.scan"
func.func @many(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 5 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// CHECK-LABEL: @asked
// CHECK-NOT: "graphc.scan"
func.func @asked(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 5 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false, unroll = 8 : i64} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// More steps than asked for: the number is left to the lowering.
// CHECK-LABEL: @partly
// CHECK: "graphc.scan"
// CHECK: unroll = 2
func.func @partly(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 5 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false, unroll = 2 : i64} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// A condition decides how many of two steps are run, but not whether one is.
// CHECK-LABEL: @condition
// CHECK: "graphc.scan"
func.func @condition(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 2 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    %f = arith.constant false
    "graphc.scan_end"(%f) : (i1) -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}

// -----

// CHECK-LABEL: @one_with_condition
// CHECK-NOT: "graphc.scan"
func.func @one_with_condition(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %n = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.mul"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    %f = arith.constant false
    "graphc.scan_end"(%f) : (i1) -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %hs : tensor<?xf64>
}
