// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-dot1 %s --split-input-file | filecheck %s

// Once d_t is kept for the product, the bias needs no state either.
// CHECK-LABEL: @bias
// CHECK-NOT: state = "w"
// CHECK-NOT: state = "b"
// CHECK: graphc.matmul
// CHECK: graphc.reduce_sum
func.func @bias(%n: index, %hs: tensor<?x16xf64>, %g: tensor<?x16xf64>, %d0: tensor<1x16xf64>, %w0: tensor<1x16x16xf64>, %b0: tensor<1x16xf64>) -> (tensor<16x16xf64>, tensor<16xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %gt = "graphc.scan_seq"(%g, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<16xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<16x16xf64>
    %e = "graphc.add"(%d1, %gt) : (tensor<16xf64>, tensor<16xf64>) -> tensor<16xf64>
    %d2 = "graphc.tanh"(%e) : (tensor<16xf64>) -> tensor<16xf64>
    %a = "graphc.dimshuffle"(%ht) {order = array<i64: 0, -1>} : (tensor<16xf64>) -> tensor<16x1xf64>
    %b = "graphc.dimshuffle"(%d2) {order = array<i64: -1, 0>} : (tensor<16xf64>) -> tensor<1x16xf64>
    %o = "graphc.mul"(%a, %b) : (tensor<16x1xf64>, tensor<1x16xf64>) -> tensor<16x16xf64>
    %w2 = "graphc.add"(%w1, %o) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16xf64>, tensor<16xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16x16xf64>, tensor<16x16xf64>) -> ()
    %b1 = "graphc.scan_prev"(%t) {state = "b", tap = -1 : i64} : (index) -> tensor<16xf64>
    %b2 = "graphc.add"(%b1, %d2) : (tensor<16xf64>, tensor<16xf64>) -> tensor<16xf64>
    "graphc.scan_carry"(%b0, %b2) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16xf64>, tensor<16xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x16x16xf64>
  %c0 = arith.constant 0 : index
  %r = "graphc.scan_seq"(%ws, %c0) : (tensor<?x16x16xf64>, index) -> tensor<16x16xf64>
  %bs = "graphc.scan_trace"(%s) {state = "b"} : (!graphc.loop) -> tensor<?x16xf64>
  %q = "graphc.scan_seq"(%bs, %c0) : (tensor<?x16xf64>, index) -> tensor<16xf64>
  return %r, %q : tensor<16x16xf64>, tensor<16xf64>
}

// -----

// Keeping two numbers costs more than the four multiplications of an iteration.
// CHECK-LABEL: @small
// CHECK: graphc.mul
// CHECK: state = "w"
func.func @small(%n: index, %hs: tensor<?x2xf64>, %g: tensor<?x2xf64>, %d0: tensor<1x2xf64>, %w0: tensor<1x2x2xf64>) -> tensor<2x2xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x2xf64>, index) -> tensor<2xf64>
    %gt = "graphc.scan_seq"(%g, %t) : (tensor<?x2xf64>, index) -> tensor<2xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<2xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<2x2xf64>
    %e = "graphc.add"(%d1, %gt) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %d2 = "graphc.tanh"(%e) : (tensor<2xf64>) -> tensor<2xf64>
    %a = "graphc.dimshuffle"(%ht) {order = array<i64: 0, -1>} : (tensor<2xf64>) -> tensor<2x1xf64>
    %b = "graphc.dimshuffle"(%d2) {order = array<i64: -1, 0>} : (tensor<2xf64>) -> tensor<1x2xf64>
    %o = "graphc.mul"(%a, %b) : (tensor<2x1xf64>, tensor<1x2xf64>) -> tensor<2x2xf64>
    %w2 = "graphc.add"(%w1, %o) : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x2xf64>, tensor<2xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x2x2xf64>, tensor<2x2xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x2x2xf64>
  %c0 = arith.constant 0 : index
  %r = "graphc.scan_seq"(%ws, %c0) : (tensor<?x2x2xf64>, index) -> tensor<2x2xf64>
  return %r : tensor<2x2xf64>
}

// -----

// So does keeping the factors of an inner product.
// CHECK-LABEL: @inner
// CHECK: graphc.matmul
// CHECK: state = "w"
func.func @inner(%n: index, %hs: tensor<?x4xf64>, %d0: tensor<1x4xf64>, %w0: tensor<1x1x1xf64>) -> tensor<1x1xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x4xf64>, index) -> tensor<4xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<4xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<1x1xf64>
    %d2 = "graphc.tanh"(%d1) : (tensor<4xf64>) -> tensor<4xf64>
    %a = "graphc.dimshuffle"(%ht) {order = array<i64: -1, 0>} : (tensor<4xf64>) -> tensor<1x4xf64>
    %b = "graphc.dimshuffle"(%d2) {order = array<i64: 0, -1>} : (tensor<4xf64>) -> tensor<4x1xf64>
    %o = "graphc.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<1x4xf64>, tensor<4x1xf64>) -> tensor<1x1xf64>
    %w2 = "graphc.add"(%w1, %o) : (tensor<1x1xf64>, tensor<1x1xf64>) -> tensor<1x1xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x1x1xf64>, tensor<1x1xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x1x1xf64>
  %c0 = arith.constant 0 : index
  %r = "graphc.scan_seq"(%ws, %c0) : (tensor<?x1x1xf64>, index) -> tensor<1x1xf64>
  return %r : tensor<1x1xf64>
}

// -----

// h_t.T @ d_t of batches: time and batch are one dimension. Subtraction is the same.
// CHECK-LABEL: @batch
// CHECK-NOT: state = "w"
// CHECK: "graphc.matmul"{{.*}}transpose_a = true{{.*}}(tensor<?x16xf64>, tensor<?x16xf64>) -> tensor<16x16xf64>
// CHECK: graphc.sub
func.func @batch(%n: index, %hs: tensor<?x8x16xf64>, %d0: tensor<1x8x16xf64>, %w0: tensor<1x16x16xf64>) -> tensor<16x16xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x8x16xf64>, index) -> tensor<8x16xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<8x16xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<16x16xf64>
    %d2 = "graphc.tanh"(%d1) : (tensor<8x16xf64>) -> tensor<8x16xf64>
    %o = "graphc.matmul"(%ht, %d2) {transpose_a = true, transpose_b = false} : (tensor<8x16xf64>, tensor<8x16xf64>) -> tensor<16x16xf64>
    %w2 = "graphc.sub"(%w1, %o) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x8x16xf64>, tensor<8x16xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16x16xf64>, tensor<16x16xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x16x16xf64>
  %c0 = arith.constant 0 : index
  %r = "graphc.scan_seq"(%ws, %c0) : (tensor<?x16x16xf64>, index) -> tensor<16x16xf64>
  return %r : tensor<16x16xf64>
}

// -----

// All rows are used.
// CHECK-LABEL: @all_rows
// CHECK: graphc.mul
// CHECK: state = "w"
func.func @all_rows(%n: index, %hs: tensor<?x16xf64>, %g: tensor<?x16xf64>, %d0: tensor<1x16xf64>, %w0: tensor<1x16x16xf64>) -> tensor<?x16x16xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %ht = "graphc.scan_seq"(%hs, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %gt = "graphc.scan_seq"(%g, %t) : (tensor<?x16xf64>, index) -> tensor<16xf64>
    %d1 = "graphc.scan_prev"(%t) {state = "d", tap = -1 : i64} : (index) -> tensor<16xf64>
    %w1 = "graphc.scan_prev"(%t) {state = "w", tap = -1 : i64} : (index) -> tensor<16x16xf64>
    %e = "graphc.add"(%d1, %gt) : (tensor<16xf64>, tensor<16xf64>) -> tensor<16xf64>
    %d2 = "graphc.tanh"(%e) : (tensor<16xf64>) -> tensor<16xf64>
    %a = "graphc.dimshuffle"(%ht) {order = array<i64: 0, -1>} : (tensor<16xf64>) -> tensor<16x1xf64>
    %b = "graphc.dimshuffle"(%d2) {order = array<i64: -1, 0>} : (tensor<16xf64>) -> tensor<1x16xf64>
    %o = "graphc.mul"(%a, %b) : (tensor<16x1xf64>, tensor<1x16xf64>) -> tensor<16x16xf64>
    %w2 = "graphc.add"(%w1, %o) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    "graphc.scan_carry"(%d0, %d2) {state = "d", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16xf64>, tensor<16xf64>) -> ()
    "graphc.scan_carry"(%w0, %w2) {state = "w", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x16x16xf64>, tensor<16x16xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ws = "graphc.scan_trace"(%s) {state = "w"} : (!graphc.loop) -> tensor<?x16x16xf64>
  return %ws : tensor<?x16x16xf64>
}
