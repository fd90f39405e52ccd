// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-to-reduce --split-input-file %s | filecheck %s

// Nothing to reduce gives the initial value, so the extreme of nothing is allowed.
// CHECK-LABEL: @maximum
// CHECK-NOT: graphc.scan
// CHECK: graphc.reduce_max{{.*}}allow_empty = true
// CHECK: graphc.maximum
func.func @maximum(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.maximum"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "maximum", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// A difference adds negatives.
// CHECK-LABEL: @difference
// CHECK: graphc.neg
// CHECK: graphc.reduce_sum
func.func @difference(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.sub"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "difference", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// CHECK-LABEL: @any
// CHECK: graphc.reduce_or{{.*}}(tensor<?x3xi1>) -> tensor<3xi1>
func.func @any(%x: tensor<?x3xi1>, %h0: tensor<1x3xi1>, %n: index) -> tensor<1x3xi1> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xi1>, index) -> tensor<3xi1>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xi1>
    %next = "graphc.logical_or"(%h, %xt) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1x3xi1>, tensor<3xi1>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "any", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x3xi1>
  return %0 : tensor<1x3xi1>
}

// -----

// A float product in another order may over- or underflow where the loop does not.
// CHECK-LABEL: @product
// CHECK: graphc.scan_carry
func.func @product(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.mul"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "product", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// All partial sums are wanted.
// CHECK-LABEL: @all
// CHECK: graphc.scan_carry
func.func @all(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.add"(%h, %xt) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "all", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// This is no sum: the sign changes in each step.
// CHECK-LABEL: @alternating
// CHECK: graphc.scan_carry
func.func @alternating(%x: tensor<?xf64>, %h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %next = "graphc.sub"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "alternating", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// Rows that might not fit the initial one are found out by the loop, if it runs.
// CHECK-LABEL: @unknown_sizes
// CHECK: graphc.scan_carry
func.func @unknown_sizes(%x: tensor<?x?xf64>, %h0: tensor<1x?xf64>, %n: index) -> tensor<1x?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x?xf64>, index) -> tensor<?xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<?xf64>
    %next = "graphc.add"(%h, %xt) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_carry"(%h0, %next) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1x?xf64>, tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "unknown_sizes", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1x?xf64>
  return %0 : tensor<1x?xf64>
}
