// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-to-associative --split-input-file %s | filecheck %s --check-prefixes=CHECK,EXACT
// RUN: graphc-opt --graphc-scan-to-associative=reassociate=true --split-input-file %s | filecheck %s --check-prefixes=CHECK,BLOCKS

// CHECK-LABEL: @initial
// CHECK: "graphc.cumulative"{{.*}}keep_initial = true, kind = "max"
func.func @initial(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.maximum"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "initial", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// A row of three elements stays in registers; the sign goes to the factor.
// CHECK-LABEL: @linear
// CHECK: %[[X:.*]] = "graphc.slice"
// CHECK: %[[A:.*]] = "graphc.neg"(%[[X]])
// CHECK: "graphc.linear_recurrence"(%[[A]], %[[X]], %arg1, %arg2)
func.func @linear(%x: tensor<?x3xf64>, %h0: tensor<1x3xf64>, %n: index) -> tensor<?x3xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    %p = "graphc.mul"(%xt, %h) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %next = "graphc.sub"(%xt, %p) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "linear", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  return %0 : tensor<?x3xf64>
}

// -----

// One multiply-add a step is what the loop takes, unless several steps may be made at once.
// CHECK-LABEL: @scalar
// EXACT: graphc.scan_carry
// BLOCKS: graphc.linear_recurrence
func.func @scalar(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %p = "graphc.mul"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %next = "graphc.add"(%p, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "scalar", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @product
// EXACT: graphc.scan_carry
// BLOCKS: graphc.cumulative
func.func @product(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.mul"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "product", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// Integers are added in one cycle.
// CHECK-LABEL: @integers
// CHECK: graphc.scan_carry
func.func @integers(%x: tensor<?xi64>, %h0: tensor<1xi64>, %n: index) -> tensor<?xi64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xi64>, index) -> tensor<i64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<i64>
    %next = "graphc.add"(%xt, %h) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xi64>, tensor<i64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "integers", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xi64>
  return %0 : tensor<?xi64>
}

// -----

// Nothing is stored in this loop, and nothing should be.
// CHECK-LABEL: @last
// CHECK: graphc.scan_carry
func.func @last(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.add"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "last", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// CHECK-LABEL: @nonlinear
// CHECK: graphc.scan_carry
func.func @nonlinear(%x: tensor<?x3xf64>, %h0: tensor<1x3xf64>, %n: index) -> tensor<?x3xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    %p = "graphc.mul"(%h, %h) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %next = "graphc.add"(%p, %xt) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "nonlinear", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  return %0 : tensor<?x3xf64>
}
