// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-join-buffer-elimination %s --split-input-file | filecheck %s
// RUN: graphc-opt --graphc-join-buffer-elimination=min-eligible=3 %s --split-input-file | filecheck %s --check-prefix=THREE

// Sizes of operands are those of what they are computed from; columns are written in place too.
// CHECK-LABEL: @columns
// CHECK-DAG: %[[N:.*]] = tensor.dim %arg0, %{{.*}}
// CHECK-DAG: %[[M:.*]] = tensor.dim %arg1, %{{.*}}
// CHECK: %[[B:.*]] = "graphc.write_buffer"(%c2{{.*}}, %{{.*}}) {type = tensor<2x?xf64>}
// CHECK: "graphc.write_split"(%[[B]], %{{.*}}, %{{.*}}) {axis = 1 : i64}
// CHECK-NOT: graphc.join
// THREE-LABEL: @columns
// THREE: graphc.join
func.func @columns(%x: tensor<2x?xf64>, %y: tensor<2x?xf64>) -> tensor<2x?xf64> {
  %a = "graphc.exp"(%x) : (tensor<2x?xf64>) -> tensor<2x?xf64>
  %b = "graphc.exp"(%y) : (tensor<2x?xf64>) -> tensor<2x?xf64>
  %0 = "graphc.join"(%a, %b) {axis = 1 : i64} : (tensor<2x?xf64>, tensor<2x?xf64>) -> tensor<2x?xf64>
  return %0 : tensor<2x?xf64>
}

// -----

// Arguments, and values that have a destination, are copied; one operand that is computed is not enough.
// CHECK-LABEL: @once
// CHECK: graphc.join
func.func @once(%x: tensor<?xf64>) -> tensor<?xf64> {
  %a = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %0 = "graphc.join"(%a, %x, %a) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// A transpose is absorbed: the slice is written transposed. A reshape of columns is not.
// CHECK-LABEL: @views
// CHECK: %[[A:.*]] = "graphc.exp"
// CHECK: %[[C:.*]] = "graphc.exp"
// CHECK: %[[R:.*]] = "graphc.reshape"(%[[C]]
// CHECK: %[[E:.*]] = "graphc.neg"
// CHECK: %[[P:.*]]:3 = "graphc.write_split"
// CHECK: %[[V:.*]] = "graphc.write_view"(%[[P]]#0) {order = array<i64: 1, 0>, type = tensor<?x2xf64>}
// CHECK: "graphc.write"(%[[A]], %[[V]])
// CHECK: "graphc.write"(%[[R]], %[[P]]#1)
// CHECK: "graphc.write"(%[[E]], %[[P]]#2)
func.func @views(%x: tensor<?x2xf64>, %y: tensor<4xf64>) -> tensor<2x?xf64> {
  %c2 = arith.constant 2 : index
  %a = "graphc.exp"(%x) : (tensor<?x2xf64>) -> tensor<?x2xf64>
  %b = "graphc.dimshuffle"(%a) {order = array<i64: 1, 0>} : (tensor<?x2xf64>) -> tensor<2x?xf64>
  %c = "graphc.exp"(%y) : (tensor<4xf64>) -> tensor<4xf64>
  %d = "graphc.reshape"(%c, %c2, %c2) : (tensor<4xf64>, index, index) -> tensor<2x2xf64>
  %e = "graphc.neg"(%d) : (tensor<2x2xf64>) -> tensor<2x2xf64>
  %f = tensor.cast %d : tensor<2x2xf64> to tensor<2x?xf64>
  %g = tensor.cast %e : tensor<2x2xf64> to tensor<2x?xf64>
  %0 = "graphc.join"(%b, %f, %g) {axis = 1 : i64} : (tensor<2x?xf64>, tensor<2x?xf64>, tensor<2x?xf64>) -> tensor<2x?xf64>
  return %0 : tensor<2x?xf64>
}

// -----

// A join of joins along one axis is one join.
// CHECK-LABEL: @nested
// CHECK: write_split
// CHECK-SAME: -> (!graphc.buffer, !graphc.buffer, !graphc.buffer)
// CHECK-NOT: write_split
func.func @nested(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %a = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %b = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %c = "graphc.neg"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %0 = "graphc.join"(%a, %b) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.join"(%0, %c) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// Along another axis, the inner join has its place in the outer one.
// CHECK-LABEL: @blocks
// CHECK: %[[I:.*]] = "graphc.write_join"
// CHECK: "graphc.write"(%[[I]],
// CHECK: "graphc.write_join"
func.func @blocks(%x: tensor<2x?xf64>, %y: tensor<2x?xf64>, %z: tensor<3x?xf64>) -> tensor<?x?xf64> {
  %a = "graphc.exp"(%x) : (tensor<2x?xf64>) -> tensor<2x?xf64>
  %b = "graphc.exp"(%y) : (tensor<2x?xf64>) -> tensor<2x?xf64>
  %c = "graphc.neg"(%z) : (tensor<3x?xf64>) -> tensor<3x?xf64>
  %0 = "graphc.join"(%a, %b) {axis = 1 : i64} : (tensor<2x?xf64>, tensor<2x?xf64>) -> tensor<2x?xf64>
  %d = tensor.cast %0 : tensor<2x?xf64> to tensor<?x?xf64>
  %e = tensor.cast %c : tensor<3x?xf64> to tensor<?x?xf64>
  %1 = "graphc.join"(%d, %e) {axis = 0 : i64} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// Updates that set everything are a join; what they started from is not needed.
// CHECK-LABEL: @tiled
// CHECK-NOT: update_slice
// CHECK-NOT: broadcast_to
// CHECK: %[[A:.*]] = "graphc.exp"
// CHECK: %[[B:.*]] = "graphc.neg"
// CHECK: %[[P:.*]]:2 = "graphc.write_split"
// CHECK: "graphc.write"(%[[A]], %[[P]]#0)
// CHECK: "graphc.write"(%[[B]], %[[P]]#1)
func.func @tiled(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %m = tensor.dim %y, %c0 : tensor<?xf64>
  %nm = arith.addi %n, %m : index
  %buffer = "graphc.broadcast_to"(%zero, %nm) : (tensor<f64>, index) -> tensor<?xf64>
  %a = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %b = "graphc.neg"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %0 = "graphc.update_slice"(%buffer, %b, %n, %m, %c1) {accumulate = false} : (tensor<?xf64>, tensor<?xf64>, index, index, index) -> tensor<?xf64>
  %1 = "graphc.update_slice"(%0, %a, %c0, %n, %c1) {accumulate = false} : (tensor<?xf64>, tensor<?xf64>, index, index, index) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// Four blocks, no two of which have an edge in common: no straight cut separates them.
// CHECK-LABEL: @pinwheel
// CHECK: update_slice
// CHECK-NOT: write_buffer
func.func @pinwheel(%x: tensor<3x3xf64>, %a: tensor<1x2xf64>, %b: tensor<2x1xf64>, %c: tensor<1x1xf64>) -> tensor<3x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.update_slice"(%x, %a, %c0, %c0, %c1, %c2, %c1, %c1) {accumulate = false} : (tensor<3x3xf64>, tensor<1x2xf64>, index, index, index, index, index, index) -> tensor<3x3xf64>
  %1 = "graphc.update_slice"(%0, %b, %c0, %c2, %c2, %c1, %c1, %c1) {accumulate = false} : (tensor<3x3xf64>, tensor<2x1xf64>, index, index, index, index, index, index) -> tensor<3x3xf64>
  %2 = "graphc.update_slice"(%1, %a, %c2, %c1, %c1, %c2, %c1, %c1) {accumulate = false} : (tensor<3x3xf64>, tensor<1x2xf64>, index, index, index, index, index, index) -> tensor<3x3xf64>
  %3 = "graphc.update_slice"(%2, %b, %c1, %c0, %c2, %c1, %c1, %c1) {accumulate = false} : (tensor<3x3xf64>, tensor<2x1xf64>, index, index, index, index, index, index) -> tensor<3x3xf64>
  %4 = "graphc.update_slice"(%3, %c, %c1, %c1, %c1, %c1, %c1, %c1) {accumulate = false} : (tensor<3x3xf64>, tensor<1x1xf64>, index, index, index, index, index, index) -> tensor<3x3xf64>
  return %4 : tensor<3x3xf64>
}

// -----

// The parts of a split of a join are its operands.
// CHECK-LABEL: @split
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1
// CHECK: return %arg1, %{{.*}} : tensor<?xf64>, tensor<2xf64>
func.func @split(%x: tensor<3xf64>, %y: tensor<?xf64>) -> (tensor<?xf64>, tensor<2xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a = tensor.cast %x : tensor<3xf64> to tensor<?xf64>
  %0 = "graphc.join"(%a, %y) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %m = tensor.dim %y, %c0 : tensor<?xf64>
  %1 = "graphc.slice"(%0, %c3, %m, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  %2 = "graphc.slice"(%0, %c1, %c2, %c1) : (tensor<?xf64>, index, index, index) -> tensor<2xf64>
  return %1, %2 : tensor<?xf64>, tensor<2xf64>
}

// -----

// Neighbouring slices are one slice.
// CHECK-LABEL: @neighbours
// CHECK-NOT: graphc
// CHECK: return %arg0
func.func @neighbours(%x: tensor<5xf64>) -> tensor<5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %0 = "graphc.slice"(%x, %c0, %c2, %c1) : (tensor<5xf64>, index, index, index) -> tensor<2xf64>
  %1 = "graphc.slice"(%x, %c2, %c3, %c1) : (tensor<5xf64>, index, index, index) -> tensor<3xf64>
  %a = tensor.cast %0 : tensor<2xf64> to tensor<?xf64>
  %b = tensor.cast %1 : tensor<3xf64> to tensor<?xf64>
  %2 = "graphc.join"(%a, %b) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<5xf64>
  return %2 : tensor<5xf64>
}

// -----

// A sum along the joined axis is a sum of sums; along another one, sums are joined.
// CHECK-LABEL: @sum
// CHECK-NOT: tensor<?x3xf64>, tensor<?x3xf64>
// CHECK: %[[A:.*]] = "graphc.reduce_sum"(%arg0) {axes = array<i64: 0>}
// CHECK: %[[B:.*]] = "graphc.reduce_sum"(%arg1) {axes = array<i64: 0>}
// CHECK: "graphc.add"(%[[A]], %[[B]])
// CHECK: "graphc.reduce_sum"(%arg0) {axes = array<i64: 1>}
// CHECK: "graphc.reduce_sum"(%arg1) {axes = array<i64: 1>}
// CHECK: "graphc.write_buffer"(%{{.*}}) {type = tensor<?xf64>}
func.func @sum(%x: tensor<?x3xf64>, %y: tensor<?x3xf64>) -> (tensor<3xf64>, tensor<?xf64>) {
  %0 = "graphc.join"(%x, %y) {axis = 0 : i64} : (tensor<?x3xf64>, tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?x3xf64>) -> tensor<3xf64>
  %2 = "graphc.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?xf64>
  return %1, %2 : tensor<3xf64>, tensor<?xf64>
}

// -----

// In the body of a scan.
// CHECK-LABEL: @body
// CHECK: graphc.scan
// CHECK: graphc.write_join
// CHECK: graphc.scan_carry
func.func @body(%n: index, %h0: tensor<1x4xf64>) -> tensor<1x4xf64> {
  %0 = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %a = "graphc.slice"(%h, %c0, %c2, %c1) : (tensor<4xf64>, index, index, index) -> tensor<2xf64>
    %b = "graphc.slice"(%h, %c2, %c2, %c1) : (tensor<4xf64>, index, index, index) -> tensor<2xf64>
    %c = "graphc.exp"(%a) : (tensor<2xf64>) -> tensor<2xf64>
    %d = "graphc.neg"(%b) : (tensor<2xf64>) -> tensor<2xf64>
    %e = tensor.cast %c : tensor<2xf64> to tensor<?xf64>
    %f = tensor.cast %d : tensor<2xf64> to tensor<?xf64>
    %new = "graphc.join"(%f, %e) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %new) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "scan", reverse = false} : (index) -> !graphc.loop
  %1 = "graphc.scan_trace"(%0) {state = "h"} : (!graphc.loop) -> tensor<1x4xf64>
  return %1 : tensor<1x4xf64>
}

// -----

// A conditional writes into its slice, a join in a region into that of the conditional.
// CHECK-LABEL: @conditional
// CHECK: %[[R:.*]] = scf.if
// CHECK: graphc.write_join
// CHECK: } else {
// CHECK: "graphc.write"(%[[R]]
func.func @conditional(%x: tensor<?xf64>, %c: tensor<i1>) -> tensor<?xf64> {
  %p = tensor.extract %c[] : tensor<i1>
  %r = scf.if %p -> tensor<?xf64> {
    %a = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    %b = "graphc.sin"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    %j = "graphc.join"(%a, %b) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    scf.yield %j : tensor<?xf64>
  } else {
    %a = "graphc.tanh"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %a : tensor<?xf64>
  }
  %s = "graphc.cos"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %j = "graphc.join"(%r, %s) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %j : tensor<?xf64>
}

// -----

// An axis is known to have size 1 before a cast only: the view that drops it knows that, too.
// CHECK-LABEL: @cast_between_views
// CHECK: "graphc.write_view"(%{{.*}}) {order = array<i64: 1, 2>, type = tensor<1x4xf64>}
// CHECK: "graphc.write_view"(%{{.*}}) {order = array<i64: 1>, type = tensor<4xf64>}
func.func @cast_between_views(%x: tensor<4xf64>) -> tensor<?x1x4xf64> {
  %0 = "graphc.sin"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: -1, 0>} : (tensor<4xf64>) -> tensor<1x4xf64>
  %2 = tensor.cast %1 : tensor<1x4xf64> to tensor<?x4xf64>
  %3 = "graphc.dimshuffle"(%2) {order = array<i64: -1, 0, 1>} : (tensor<?x4xf64>) -> tensor<1x?x4xf64>
  %4 = tensor.cast %3 : tensor<1x?x4xf64> to tensor<?x1x4xf64>
  %5 = "graphc.exp"(%4) : (tensor<?x1x4xf64>) -> tensor<?x1x4xf64>
  %j = "graphc.join"(%4, %5) {axis = 0 : i64} : (tensor<?x1x4xf64>, tensor<?x1x4xf64>) -> tensor<?x1x4xf64>
  return %j : tensor<?x1x4xf64>
}

// -----

// One part is enough where it is an array that was updated more than once: updates store in memory that is
// chosen before the first one.
// CHECK-LABEL: @updated
// CHECK: %[[U:.*]] = "graphc.update_slice"(
// CHECK: %[[V:.*]] = "graphc.update_slice"(%[[U]]
// CHECK: "graphc.write"(%[[V]],
// THREE-LABEL: @updated
// THREE: "graphc.write"
func.func @updated(%x: tensor<?xf64>, %y: tensor<1xf64>, %n: index) -> tensor<?xf64> {
  %c1 = arith.constant 1 : index
  %0 = "graphc.update_slice"(%x, %y, %c1, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %1 = "graphc.update_slice"(%0, %y, %n, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %2 = "graphc.join"(%1, %x) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// Of one update bufferization decides.
// CHECK-LABEL: @updated_once
// CHECK: "graphc.join"
func.func @updated_once(%x: tensor<?xf64>, %y: tensor<1xf64>) -> tensor<?xf64> {
  %c1 = arith.constant 1 : index
  %0 = "graphc.update_slice"(%x, %y, %c1, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %1 = "graphc.join"(%0, %x) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// Parts that are added to zeros, each element once: the gradient of a vector that was taken apart.
// CHECK-LABEL: @increased_parts
// CHECK-NOT: graphc.update_slice
// CHECK: graphc.write_split
// CHECK-NOT: "graphc.add"
func.func @increased_parts(%x: tensor<4xf64>, %y: tensor<5xf64>) -> tensor<9xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %c9) : (tensor<f64>, index) -> tensor<9xf64>
  %a = "graphc.exp"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  %b = "graphc.exp"(%y) : (tensor<5xf64>) -> tensor<5xf64>
  %0 = "graphc.update_slice"(%zeros, %b, %c4, %c5, %c1) {accumulate = true} : (tensor<9xf64>, tensor<5xf64>, index, index, index) -> tensor<9xf64>
  %1 = "graphc.update_slice"(%0, %a, %c0, %c4, %c1) {accumulate = true} : (tensor<9xf64>, tensor<4xf64>, index, index, index) -> tensor<9xf64>
  return %1 : tensor<9xf64>
}

// -----

// Started from something else, it is a sum; where elements are increased twice it is none of these.
// CHECK-LABEL: @increased_parts_of_others
// CHECK: %[[J:.*]] = "graphc.write_join"
// CHECK: "graphc.add"(%arg2, %[[J]])
// CHECK: "graphc.update_slice"
// CHECK: "graphc.update_slice"
func.func @increased_parts_of_others(%x: tensor<4xf64>, %y: tensor<5xf64>, %z: tensor<9xf64>) -> (tensor<9xf64>, tensor<9xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %a = "graphc.exp"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  %b = "graphc.exp"(%y) : (tensor<5xf64>) -> tensor<5xf64>
  %0 = "graphc.update_slice"(%z, %b, %c4, %c5, %c1) {accumulate = true} : (tensor<9xf64>, tensor<5xf64>, index, index, index) -> tensor<9xf64>
  %1 = "graphc.update_slice"(%0, %a, %c0, %c4, %c1) {accumulate = true} : (tensor<9xf64>, tensor<4xf64>, index, index, index) -> tensor<9xf64>
  %2 = "graphc.update_slice"(%z, %b, %c3, %c5, %c1) {accumulate = true} : (tensor<9xf64>, tensor<5xf64>, index, index, index) -> tensor<9xf64>
  %3 = "graphc.update_slice"(%2, %a, %c0, %c4, %c1) {accumulate = true} : (tensor<9xf64>, tensor<4xf64>, index, index, index) -> tensor<9xf64>
  return %1, %3 : tensor<9xf64>, tensor<9xf64>
}
