// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-remove-constants-and-unused-inputs --split-input-file %s | filecheck %s

// Rows of equal elements, whose sizes only the stack knows: the row is made anew, of these sizes.
// CHECK-LABEL: @stretched
// CHECK-NOT: graphc.scan_seq
// CHECK: return
func.func @stretched(%a0: tensor<1x?xf64>, %m: index, %n: index) -> tensor<?x?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %row = "graphc.broadcast_to"(%one, %m) : (tensor<1xf64>, index) -> tensor<?xf64>
  %wide = "graphc.dimshuffle"(%row) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
  %x = "graphc.broadcast_to"(%wide, %n, %m) : (tensor<1x?xf64>, index, index) -> tensor<?x?xf64>
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<?xf64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x?xf64>, index) -> tensor<?xf64>
    %b = "graphc.mul"(%a, %xt) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_carry"(%a0, %b) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1x?xf64>, tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "stretched", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?x?xf64>
  return %ys : tensor<?x?xf64>
}

// -----

// The same after a view, which has no sizes: the row is read where the loop is, and not before the view.
// CHECK-LABEL: @view
// CHECK: graphc.dimshuffle
// CHECK: graphc.scan"
// CHECK: return
func.func @view(%a0: tensor<1x?xf64>, %m: index) -> tensor<?x?xf64> {
  %two = arith.constant 2 : index
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %rows = "graphc.broadcast_to"(%one, %m) : (tensor<1xf64>, index) -> tensor<?xf64>
  %x = "graphc.dimshuffle"(%rows) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
  %y = "graphc.dimshuffle"(%rows) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
  %n = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<?xf64>
    %yt = "graphc.scan_seq"(%y, %t) : (tensor<1x?xf64>, index) -> tensor<?xf64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x1xf64>, index) -> tensor<1xf64>
    %b = "graphc.mul"(%a, %yt) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    %c = "graphc.mul"(%b, %xt) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
    "graphc.scan_carry"(%a0, %c) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1x?xf64>, tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "view", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?x?xf64>
  return %ys : tensor<?x?xf64>
}
