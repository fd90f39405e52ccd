// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-merge-inouts --split-input-file %s | filecheck %s

// Each state reads the other one: equal as long as they are assumed to be. The third one starts alike and goes on differently.
// CHECK-LABEL: @crossed
// CHECK-NOT: state = "b"
// CHECK: "graphc.scan_carry"{{.*}}state = "a"
// CHECK-NEXT: "graphc.scan_carry"{{.*}}state = "c"
// CHECK-NEXT: graphc.scan_end
func.func @crossed(%h0: tensor<1xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<f64>
    %b = "graphc.scan_prev"(%t) {state = "b", tap = -1 : i64} : (index) -> tensor<f64>
    %c = "graphc.scan_prev"(%t) {state = "c", tap = -1 : i64} : (index) -> tensor<f64>
    %a1 = "graphc.sin"(%b) : (tensor<f64>) -> tensor<f64>
    %b1 = "graphc.sin"(%a) : (tensor<f64>) -> tensor<f64>
    %c1 = "graphc.cos"(%c) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %a1) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%h0, %b1) {state = "b", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%h0, %c1) {state = "c", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "crossed", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?xf64>
  %bs = "graphc.scan_trace"(%s) {state = "b"} : (!graphc.loop) -> tensor<?xf64>
  %cs = "graphc.scan_trace"(%s) {state = "c"} : (!graphc.loop) -> tensor<?xf64>
  return %as, %bs, %cs : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
}

// -----

// Of two outputs of one value, the one that keeps less is a slice of the other.
// CHECK-LABEL: @outputs
// CHECK: "graphc.scan_collect"{{.*}}state = "y"
// CHECK-NEXT: graphc.scan_end
// CHECK: "graphc.slice"{{.*}} -> tensor<1xf64>
func.func @outputs(%x: tensor<?xf64>, %n: index) -> (tensor<?xf64>, tensor<1xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    "graphc.scan_collect"(%xt) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_collect"(%xt) {state = "z", keep = "last", rows = 1 : i64} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outputs", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %zs = "graphc.scan_trace"(%s) {state = "z"} : (!graphc.loop) -> tensor<1xf64>
  return %ys, %zs : tensor<?xf64>, tensor<1xf64>
}

// -----

// An output of the previous rows is what the state keeps but for its last row. Downwards, later rows are stored first.
// CHECK-LABEL: @previous
// CHECK-NOT: graphc.scan_collect
// CHECK: %[[ROWS:.*]] = "graphc.scan_trace"
// CHECK: "graphc.slice"(%[[ROWS]], %c1
func.func @previous(%h0: tensor<1xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%h) {state = "before", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "previous", reverse = true} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %bs = "graphc.scan_trace"(%s) {state = "before"} : (!graphc.loop) -> tensor<?xf64>
  return %hs, %bs : tensor<?xf64>, tensor<?xf64>
}

// -----

// Nothing is kept of the state but its last row, so the output stays.
// CHECK-LABEL: @not_kept
// CHECK: graphc.scan_collect
func.func @not_kept(%h0: tensor<1xf64>, %n: index) -> (tensor<1xf64>, tensor<?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "not_kept", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %hs, %ys : tensor<1xf64>, tensor<?xf64>
}
