// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-merge --split-input-file %s | filecheck %s
// RUN: graphc-opt --graphc-scan-merge="max-operations=2" --split-input-file %s | filecheck %s --check-prefix=SMALL

// Siblings of one length; a name that clashes gets a number. What stands between them and reads the first moves after.
// CHECK-LABEL: @siblings
// CHECK: graphc.scan"
// CHECK: "graphc.scan_carry"{{.*}}state = "h"
// CHECK: "graphc.scan_prev"{{.*}}state = "h_2"
// CHECK: "graphc.scan_carry"{{.*}}state = "h_2"
// CHECK: name = "a+b"
// CHECK: graphc.scan_trace{{.*}}state = "h"}
// CHECK: graphc.reduce_sum
// CHECK: graphc.scan_trace{{.*}}state = "h_2"}
// SMALL-LABEL: @siblings
// SMALL: name = "a"
// SMALL: name = "b"
func.func @siblings(%a0: tensor<1xf64>, %b0: tensor<1xf64>, %n: index) -> (tensor<f64>, tensor<?xf64>) {
  %a = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%a0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "a", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%a) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %total = "graphc.reduce_sum"(%as) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %b = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.cos"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%b0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "b", reverse = false} : (index) -> !graphc.loop
  %bs = "graphc.scan_trace"(%b) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %total, %bs : tensor<f64>, tensor<?xf64>
}

// -----

// The whole trace, initial row first: row t is the previous row, row t + 1 the new one. The check that there are enough rows holds.
// CHECK-LABEL: @window
// CHECK-NOT: graphc.check
// CHECK: graphc.scan"
// CHECK: %[[NEW:.*]] = "graphc.sin"
// CHECK: %[[OLD:.*]] = "graphc.scan_prev"{{.*}}tap = -1
// CHECK: "graphc.sub"(%[[NEW]], %[[OLD]])
// CHECK: name = "h+d"
func.func @window(%h0: tensor<1xf64>, %x: tensor<?xf64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %a = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "h", reverse = false} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%a) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %rows = tensor.dim %hs, %c0 : tensor<?xf64>
  %m = arith.subi %rows, %c1 : index
  %enough = arith.cmpi sge, %m, %c0 : index
  "graphc.check"(%enough, %m, %c0) {message = "{given} steps", error = "ValueError"} : (i1, index, index) -> ()
  %d = "graphc.scan"(%m) ({
  ^bb0(%t: index):
    %u = arith.addi %t, %c1 : index
    %new = "graphc.scan_seq"(%hs, %u) : (tensor<?xf64>, index) -> tensor<f64>
    %old = "graphc.scan_seq"(%hs, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.sub"(%new, %old) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "d", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%d) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %ys : tensor<?xf64>
}

// -----

// Rows that later iterations compute cannot be passed on: the second loop runs the other way.
// CHECK-LABEL: @against
// CHECK: name = "up"
// CHECK: name = "down"
func.func @against(%x: tensor<?xf64>, %n: index) -> tensor<?xf64> {
  %a = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.sin"(%xt) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "up", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%a) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  %b = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %at = "graphc.scan_seq"(%as, %t) : (tensor<?xf64>, index) -> tensor<f64>
    "graphc.scan_collect"(%at) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "down", reverse = true} : (index) -> !graphc.loop
  %bs = "graphc.scan_trace"(%b) {state = "y"} : (!graphc.loop) -> tensor<?xf64>
  return %bs : tensor<?xf64>
}

// -----

// Both stop at the same iteration, because their states are equal.
// CHECK-LABEL: @stop
// CHECK: name = "a+b"
func.func @stop(%h0: tensor<1xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %limit = arith.constant dense<4.0> : tensor<f64>
  %a = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.exp"(%h) : (tensor<f64>) -> tensor<f64>
    %over = "graphc.gt"(%y, %limit) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %done = tensor.extract %over[] : tensor<i1>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"(%done) : (i1) -> ()
  }) {name = "a", reverse = false} : (index) -> !graphc.loop
  %b = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.exp"(%h) : (tensor<f64>) -> tensor<f64>
    %over = "graphc.gt"(%y, %limit) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %done = tensor.extract %over[] : tensor<i1>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"(%done) : (i1) -> ()
  }) {name = "b", reverse = false} : (index) -> !graphc.loop
  %as = "graphc.scan_trace"(%a) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  %bs = "graphc.scan_trace"(%b) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return %as, %bs : tensor<?xf64>, tensor<?xf64>
}

// -----

// The second loop needs the last row of the first before it starts.
// CHECK-LABEL: @needs_all
// CHECK: name = "a"
// CHECK: name = "b"
func.func @needs_all(%h0: tensor<1xf64>, %n: index) -> tensor<1xf64> {
  %a = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.sin"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "a", reverse = false} : (index) -> !graphc.loop
  %last = "graphc.scan_trace"(%a) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  %b = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %y = "graphc.cos"(%h) : (tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%last, %y) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "b", reverse = false} : (index) -> !graphc.loop
  %end = "graphc.scan_trace"(%b) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %end : tensor<1xf64>
}
