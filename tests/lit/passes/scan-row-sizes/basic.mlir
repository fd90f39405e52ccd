// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-row-sizes --cse --split-input-file %s | filecheck %s

// Sizes that follow from what is outside stay as they are.
// CHECK-LABEL: @known
// CHECK: graphc.scan"
// CHECK-NOT: graphc.scan"
// CHECK-NOT: graphc.specify_shape
func.func @known(%x: tensor<?x?xf64>, %n: index) -> tensor<?x?xf64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?x?xf64>, index) -> tensor<?xf64>
    %y = "graphc.exp"(%xt) : (tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x?xf64>
  return %ys : tensor<?x?xf64>
}

// -----

// Backwards, with a stop condition: the first iteration is at n - 1, reads the initial row of the state, and
// is not stopped.
// CHECK-LABEL: @state
// CHECK: %[[ONCE:.*]] = arith.minsi
// CHECK: %[[LAST:.*]] = arith.subi %arg2,
// CHECK: graphc.scan"(%[[ONCE]])
// CHECK: ^bb0(%[[I:.*]]: index):
// CHECK: %[[T:.*]] = arith.addi %[[I]], %[[LAST]]
// CHECK: "graphc.scan_seq"(%arg1, %[[I]]) : (tensor<1xi64>, index)
// CHECK: "graphc.slice"(%arg0, %[[T]],
// CHECK-NOT: "graphc.scan_carry"
// CHECK: "graphc.scan_end"()
// CHECK: reverse = false
// CHECK: graphc.scan"(%arg2)
// CHECK: "graphc.specify_shape"
// CHECK: "graphc.scan_carry"
// CHECK: "graphc.scan_end"(%
// CHECK: reverse = true
func.func @state(%x: tensor<?xf64>, %k0: tensor<1xi64>, %n: index) -> tensor<?x?xf64> {
  %c1 = arith.constant 1 : index
  %stop = arith.constant true
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %k = "graphc.scan_prev"(%t) {state = "k", tap = -1 : i64} : (index) -> tensor<i64>
    %number = tensor.extract %k[] : tensor<i64>
    %size = arith.index_cast %number : i64 to index
    %part = "graphc.slice"(%x, %t, %size, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
    "graphc.scan_collect"(%part) {state = "part", keep = "steps"} : (tensor<?xf64>) -> ()
    %next = "graphc.add"(%k, %k) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    "graphc.scan_carry"(%k0, %next) {state = "k", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xi64>, tensor<i64>) -> ()
    "graphc.scan_end"(%stop) : (i1) -> ()
  }) {name = "loop", reverse = true} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "part"} : (!graphc.loop) -> tensor<?x?xf64>
  return %ys : tensor<?x?xf64>
}

// -----

// The rows of an inner trace are as many as an inner loop runs: its size is asked for in the first iteration.
// CHECK-LABEL: @nested
// CHECK: "graphc.scan_collect"(%{{.*}}) {{{.*}}state = "size of y along 0"
// CHECK: "graphc.specify_shape"
func.func @nested(%k: tensor<?xi64>, %n: index) -> tensor<?x?xi64> {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %kt = "graphc.scan_seq"(%k, %t) : (tensor<?xi64>, index) -> tensor<i64>
    %number = tensor.extract %kt[] : tensor<i64>
    %steps = arith.index_cast %number : i64 to index
    %inner = "graphc.scan"(%steps) ({
    ^bb0(%u: index):
      "graphc.scan_collect"(%kt) {state = "z", keep = "steps"} : (tensor<i64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {name = "inner", reverse = false} : (index) -> !graphc.loop
    %y = "graphc.scan_trace"(%inner) {state = "z"} : (!graphc.loop) -> tensor<?xi64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<?xi64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  %ys = "graphc.scan_trace"(%s) {state = "y"} : (!graphc.loop) -> tensor<?x?xi64>
  return %ys : tensor<?x?xi64>
}
