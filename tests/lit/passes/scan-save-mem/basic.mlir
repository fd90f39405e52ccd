// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-save-mem --canonicalize --split-input-file %s | filecheck %s

// Of h only the length is asked for: it follows from the number of steps, and nothing is kept.
// CHECK-LABEL: @length
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "last", rows = 0 : i64
// CHECK: graphc.scan_collect
// CHECK-SAME: keep = "steps"
// CHECK-NOT: state = "h"
// CHECK: arith.addi %arg0
func.func @length(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> (index, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%e) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %rows = tensor.dim %hs, %c0 : tensor<?xf64>
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %rows, %ys : index, tensor<?xf64>
}

// -----

// The initial row is not read, and the slice is then all of the result.
// CHECK-LABEL: @steps
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "steps"
// CHECK: %[[H:.*]] = "graphc.scan_trace"
// CHECK-NEXT: return %[[H]]
func.func @steps(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c1, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// With reverse, the initial row is stored last, and h[:n] are the steps.
// CHECK-LABEL: @steps_backwards
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "steps"
// CHECK: %[[H:.*]] = "graphc.scan_trace"
// CHECK-NEXT: return %[[H]]
func.func @steps_backwards(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c0, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// h[:4]: the rows that are seen need three iterations at most.
// CHECK-LABEL: @prefix
// CHECK: %[[N:.*]] = arith.minsi %arg0, %c3
// CHECK: "graphc.scan"(%[[N]])
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "all"
func.func @prefix(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %rows = arith.addi %n, %c1 : index
  %size = arith.minsi %rows, %c4 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c0, %size, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// y[-1] needs a step to be run, which a check says: it comes first.
// CHECK-LABEL: @guarded
// CHECK: "graphc.check"
// CHECK: "graphc.scan"
// CHECK: graphc.scan_collect
// CHECK-SAME: keep = "last", rows = 1 : i64
// CHECK: %[[Y:.*]] = "graphc.scan_trace"({{.*}}) {state = "y"} : (!graphc.loop) -> tensor<1xf64>
// CHECK-NEXT: return %[[Y]]
func.func @guarded(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%e) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %ok = arith.cmpi sge, %n, %c1 : index
  "graphc.check"(%ok, %n, %c1) {message = "no rows", error = "IndexError"} : (i1, index, index) -> ()
  %last = arith.subi %n, %c1 : index
  %0 = "graphc.slice"(%ys, %last, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// Without a check the scan might have no row to keep: zeros would be in its place.
// CHECK-LABEL: @unguarded
// CHECK: graphc.scan_collect
// CHECK-SAME: keep = "last", padded, rows = 1 : i64
func.func @unguarded(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%e) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %last = arith.subi %n, %c1 : index
  %0 = "graphc.slice"(%ys, %last, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// A loop with a condition: its last row is known by the number of steps it took.
// CHECK-LABEL: @while
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "last", rows = 1 : i64
func.func @while(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    %f = arith.constant false
    "graphc.scan_end"(%f) : (i1) -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %rows = tensor.dim %hs, %c0 : tensor<?xf64>
  %last = arith.subi %rows, %c1 : index
  %0 = "graphc.slice"(%hs, %last, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// None of the steps after a row at an unknown position is needed, and then it is the last one.
// CHECK-LABEL: @unknown
// CHECK: %[[I:.*]] = arith.maxsi %arg3, %c0
// CHECK: %[[N:.*]] = arith.minsi %arg0, %[[I]]
// CHECK: "graphc.scan"(%[[N]])
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "last", rows = 1 : i64
// CHECK: %[[H:.*]] = "graphc.scan_trace"
// CHECK-NEXT: return %[[H]]
func.func @unknown(%n: index, %x: tensor<?xf64>, %h0: tensor<1xf64>, %i: index) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %i, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// Checks are made in every iteration, even if only the first row is read.
// CHECK-LABEL: @checked
// CHECK: "graphc.scan"(%arg0)
// CHECK: graphc.check
func.func @checked(%n: index, %x: tensor<?xf64>, %c: tensor<?xi1>) -> tensor<1xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %c_t = "graphc.scan_seq"(%c, %t) : (tensor<?xi1>, index) -> tensor<i1>
    %holds = tensor.extract %c_t[] : tensor<i1>
    "graphc.check"(%holds, %t, %t) {error = "AssertionError", message = "m"} : (i1, index, index) -> ()
    "graphc.scan_collect"(%x_t) {state = "h", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %0 = "graphc.slice"(%hs, %c0, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
  return %0 : tensor<1xf64>
}

// -----

// From which row on is known in the call: the iterations before it are a loop that keeps one row.
// CHECK-LABEL: @tail
// CHECK: "graphc.scan"(%[[FIRST:.*]]) ({
// CHECK: graphc.scan_carry
// CHECK-SAME: keep = "last", rows = 1 : i64
// CHECK: %[[ROW:.*]] = "graphc.scan_trace"
// CHECK: "graphc.scan"(%arg1)
// CHECK: %[[T:.*]] = arith.addi %{{.*}}, %[[FIRST]]
// CHECK: "graphc.scan_seq"(%arg2, %[[T]])
// CHECK: graphc.scan_carry"(%[[ROW]],
// CHECK-SAME: keep = "steps"
// CHECK: %[[H:.*]] = "graphc.scan_trace"
// CHECK-NEXT: return %[[H]]
func.func @tail(%n: index, %m: index, %x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %x_t = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %e = "graphc.add"(%h, %x_t) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %e) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %from = arith.subi %n, %m : index
  %0 = "graphc.slice"(%hs, %from, %m, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
