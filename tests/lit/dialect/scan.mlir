// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt %s | graphc-opt | filecheck %s

// CHECK-LABEL: func.func @states
func.func @states(%x: tensor<?x3xf64>, %h0: tensor<1x3xf64>, %g0: tensor<2xf32>, %n: index) -> (tensor<?x3xf64>, tensor<1xf32>, tensor<?xf32>, index) {
  // CHECK: %[[S:.*]] = "graphc.scan"(%{{.*}}) ({
  // CHECK-NEXT: ^bb0(%[[T:.*]]: index):
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // CHECK-NEXT: "graphc.scan_seq"(%{{.*}}, %[[T]]) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf64>
    // CHECK-NEXT: "graphc.scan_prev"(%[[T]]) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    %g = "graphc.scan_prev"(%t) {state = "g", tap = -2 : i64} : (index) -> tensor<f32>
    %y = "graphc.add"(%h, %xt) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    // CHECK: "graphc.scan_carry"(%{{.*}}, %{{.*}}) {keep = "all", state = "h", taps = array<i64: -1>, writes = array<i64: 0>}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1x3xf64>, tensor<3xf64>) -> ()
    // CHECK: "graphc.scan_carry"(%{{.*}}, %{{.*}}, %{{.*}}) {keep = "last", rows = 1 : i64, state = "g", taps = array<i64: -2>, writes = array<i64: -1, 0>}
    "graphc.scan_carry"(%g0, %g, %g) {state = "g", taps = array<i64: -2>, writes = array<i64: -1, 0>, keep = "last", rows = 1 : i64} : (tensor<2xf32>, tensor<f32>, tensor<f32>) -> ()
    "graphc.scan_collect"(%g) {state = "out", keep = "steps"} : (tensor<f32>) -> ()
    // CHECK: "graphc.scan_end"() : () -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // CHECK: "graphc.scan_trace"(%[[S]]) {state = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  %gs = "graphc.scan_trace"(%s) {state = "g"} : (!graphc.loop) -> tensor<1xf32>
  %outs = "graphc.scan_trace"(%s) {state = "out"} : (!graphc.loop) -> tensor<?xf32>
  // CHECK: "graphc.scan_steps"(%[[S]]) : (!graphc.loop) -> index
  %steps = "graphc.scan_steps"(%s) : (!graphc.loop) -> index
  return %hs, %gs, %outs, %steps : tensor<?x3xf64>, tensor<1xf32>, tensor<?xf32>, index
}

// States of nested loops may have one name: each is read in the body of its own loop.
// CHECK-LABEL: func.func @nested
func.func @nested(%h0: tensor<1xf64>, %n: index) {
  // CHECK: ^bb0(%[[OUTER:.*]]: index):
  // CHECK-NEXT: "graphc.scan_prev"(%[[OUTER]])
  // CHECK: ^bb0(%[[INNER:.*]]: index):
  // CHECK-NEXT: "graphc.scan_prev"(%[[INNER]])
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %i = "graphc.scan"(%n) ({
    ^bb0(%u: index):
      %b = "graphc.scan_prev"(%u) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
      %stop = "graphc.gt"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %flag = tensor.extract %stop[] : tensor<i1>
      "graphc.scan_carry"(%h0, %a) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
      // CHECK: "graphc.scan_end"(%{{.*}}) : (i1) -> ()
      "graphc.scan_end"(%flag) : (i1) -> ()
    }) {name = "inner", reverse = true} : (index) -> !graphc.loop
    "graphc.scan_carry"(%h0, %a) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  return
}
