// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-seq %s --split-input-file | filecheck %s

// The product with b follows the exp out of the loop: the loop reads one sequence either way.
// CHECK-LABEL: @chain
// CHECK: %[[X:.*]] = "graphc.slice"(%arg1
// CHECK: %[[E:.*]] = "graphc.exp"(%[[X]])
// CHECK: %[[B:.*]] = "graphc.dimshuffle"(%arg3) {order = array<i64: -1, 0>}
// CHECK: %[[D:.*]] = "graphc.mul"(%[[E]], %[[B]])
// CHECK: graphc.scan
// CHECK: "graphc.scan_seq"(%[[D]]
// CHECK-NOT: graphc.mul
func.func @chain(%n: index, %x: tensor<?x4xf64>, %h0: tensor<1x4xf64>, %b: tensor<4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %e = "graphc.exp"(%xt) : (tensor<4xf64>) -> tensor<4xf64>
    %d = "graphc.mul"(%e, %b) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}

// -----

// Arithmetic alone stays.
// CHECK-LABEL: @cheap
// CHECK-NEXT: graphc.scan
// CHECK: graphc.mul
func.func @cheap(%n: index, %x: tensor<?x4xf64>, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %d = "graphc.mul"(%xt, %xt) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}

// -----

// The loop may end before most rows are needed.
// CHECK-LABEL: @stops
// CHECK: graphc.scan
// CHECK: graphc.exp
func.func @stops(%n: index, %k: index, %x: tensor<?x4xf64>, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %d = "graphc.exp"(%xt) : (tensor<4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %stop = arith.cmpi eq, %t, %k : index
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"(%stop) : (i1) -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}

// -----

// Row t + 2: the rows from 2 on.
// CHECK-LABEL: @offset
// CHECK: %[[TWO:.*]] = arith.addi %{{.*}}, %c2
// CHECK: "graphc.slice"(%arg1, %[[TWO]], %{{.*}}, %arg0,
// CHECK: graphc.exp
// CHECK: graphc.scan
func.func @offset(%n: index, %x: tensor<?x4xf64>, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %c2 = arith.constant 2 : index
    %i = arith.addi %t, %c2 : index
    %xt = "graphc.scan_seq"(%x, %i) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %d = "graphc.exp"(%xt) : (tensor<4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}

// -----

// Row n - 1 - t: the rows with stride -1.
// CHECK-LABEL: @backwards
// CHECK: arith.constant -1 : index
// CHECK: "graphc.slice"(%arg1
// CHECK: graphc.exp
// CHECK: graphc.scan
func.func @backwards(%n: index, %x: tensor<?x4xf64>, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %c1 = arith.constant 1 : index
    %m = arith.subi %n, %c1 : index
    %i = arith.subi %m, %t : index
    %xt = "graphc.scan_seq"(%x, %i) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %d = "graphc.exp"(%xt) : (tensor<4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %d) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}

// -----

// A stack of the outer products would be 32 times as large as what the loop reads.
// CHECK-LABEL: @grows
// CHECK-NEXT: graphc.scan
// CHECK: graphc.exp
func.func @grows(%n: index, %x: tensor<?x32xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x32xf64>, index) -> tensor<32xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %a = "graphc.dimshuffle"(%xt) {order = array<i64: 0, -1>} : (tensor<32xf64>) -> tensor<32x1xf64>
    %b = "graphc.dimshuffle"(%xt) {order = array<i64: -1, 0>} : (tensor<32xf64>) -> tensor<1x32xf64>
    %o = "graphc.mul"(%a, %b) : (tensor<32x1xf64>, tensor<1x32xf64>) -> tensor<32x32xf64>
    %e = "graphc.exp"(%o) : (tensor<32x32xf64>) -> tensor<32x32xf64>
    %m = "graphc.reduce_max"(%e) {axes = array<i64: 0, 1>} : (tensor<32x32xf64>) -> tensor<f64>
    %z = "graphc.add"(%h, %m) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// Both factors change: a batched product.
// CHECK-LABEL: @batched
// CHECK: "graphc.matmul"{{.*}}(tensor<?x2x3xf64>, tensor<?x3x2xf64>) -> tensor<?x2x2xf64>
// CHECK: graphc.scan
// CHECK-NOT: graphc.matmul
func.func @batched(%n: index, %x: tensor<?x2x3xf64>, %y: tensor<?x3x2xf64>, %h0: tensor<1x2x2xf64>) -> tensor<?x2x2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x2x3xf64>, index) -> tensor<2x3xf64>
    %yt = "graphc.scan_seq"(%y, %t) : (tensor<?x3x2xf64>, index) -> tensor<3x2xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<2x2xf64>
    %p = "graphc.matmul"(%xt, %yt) {transpose_a = false, transpose_b = false} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
    %z = "graphc.add"(%h, %p) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x2x2xf64>, tensor<2x2xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x2x2xf64>
  return %r : tensor<?x2x2xf64>
}

// -----

// The right factor is the same in all iterations: one product of all rows.
// CHECK-LABEL: @folded
// CHECK: "graphc.matmul"{{.*}}(tensor<?x3xf64>, tensor<3x2xf64>) -> tensor<?x2xf64>
// CHECK: graphc.scan
// CHECK-NOT: graphc.matmul
func.func @folded(%n: index, %x: tensor<?x2x3xf64>, %u: tensor<3x2xf64>, %h0: tensor<1x2x2xf64>) -> tensor<?x2x2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x2x3xf64>, index) -> tensor<2x3xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<2x2xf64>
    %p = "graphc.matmul"(%xt, %u) {transpose_a = false, transpose_b = false} : (tensor<2x3xf64>, tensor<3x2xf64>) -> tensor<2x2xf64>
    %z = "graphc.add"(%h, %p) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x2x2xf64>, tensor<2x2xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x2x2xf64>
  return %r : tensor<?x2x2xf64>
}

// -----

// Sizes that disagree must not fail if there is no iteration: without rows the size of x is that of u.
// CHECK-LABEL: @fits
// CHECK: %[[U:.*]] = tensor.dim %arg2
// CHECK: %[[EMPTY:.*]] = arith.cmpi eq, %arg0
// CHECK: arith.select %[[EMPTY]], %[[U]]
// CHECK: graphc.matmul
// CHECK: graphc.scan
func.func @fits(%n: index, %x: tensor<?x?xf64>, %u: tensor<?x4xf64>, %h0: tensor<1x4xf64>) -> tensor<?x4xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x?xf64>, index) -> tensor<?xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %row = "graphc.dimshuffle"(%xt) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
    %p = "graphc.matmul"(%row, %u) {transpose_a = false, transpose_b = false} : (tensor<1x?xf64>, tensor<?x4xf64>) -> tensor<1x4xf64>
    %q = "graphc.dimshuffle"(%p) {order = array<i64: 1>} : (tensor<1x4xf64>) -> tensor<4xf64>
    %z = "graphc.add"(%h, %q) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %z) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return %r : tensor<?x4xf64>
}
