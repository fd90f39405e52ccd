// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-push-out-non-seq --split-input-file %s | filecheck %s

// A sum of vectors whose sizes may differ could fail, which a loop without iterations would not: it stays. Sizes
// that are known to agree are fine.
// CHECK-LABEL: @sizes
// CHECK: %[[SINE:.*]] = "graphc.sin"(%arg0)
// CHECK: "graphc.mul"(%arg0, %[[SINE]])
// CHECK: graphc.scan"
// CHECK-NOT: graphc.mul
// CHECK: "graphc.add"(%arg0, %arg1)
func.func @sizes(%a: tensor<?xf64>, %b: tensor<?xf64>, %n: index) -> (tensor<?x?xf64>, tensor<?x?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %sine = "graphc.sin"(%a) : (tensor<?xf64>) -> tensor<?xf64>
    %product = "graphc.mul"(%a, %sine) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    %sum = "graphc.add"(%a, %b) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_collect"(%product) {state = "product", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_collect"(%sum) {state = "sum", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "sizes", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "product"} : (!graphc.loop) -> tensor<?x?xf64>
  %1 = "graphc.scan_trace"(%s) {state = "sum"} : (!graphc.loop) -> tensor<?x?xf64>
  return %0, %1 : tensor<?x?xf64>, tensor<?x?xf64>
}

// -----

// Three iterations surely run.
// CHECK-LABEL: @runs
// CHECK: "graphc.add"(%arg0, %arg1)
// CHECK: graphc.scan"
func.func @runs(%a: tensor<?xf64>, %b: tensor<?xf64>) -> tensor<3x?xf64> {
  %n = arith.constant 3 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %sum = "graphc.add"(%a, %b) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    "graphc.scan_collect"(%sum) {state = "sum", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "runs", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "sum"} : (!graphc.loop) -> tensor<3x?xf64>
  return %0 : tensor<3x?xf64>
}

// -----

// Work of the inner loop moves out of both; an inner loop of its own moves as a whole.
// CHECK-LABEL: @nested
// CHECK: name = "alone"
// CHECK: %[[E:.*]] = "graphc.exp"(%arg0)
// CHECK: ^bb0
// CHECK: "graphc.add"(%{{.*}}, %[[E]])
// CHECK: ^bb0
// CHECK: name = "inner"
// CHECK: name = "outer"
func.func @nested(%a: tensor<f64>, %x: tensor<?xf64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>) {
  %c2 = arith.constant 2 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %alone = "graphc.scan"(%c2) ({
    ^bb0(%u: index):
      %e = "graphc.exp"(%a) : (tensor<f64>) -> tensor<f64>
      "graphc.scan_collect"(%e) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {name = "alone", reverse = false} : (index) -> !graphc.loop
    %es = "graphc.scan_trace"(%alone) {state = "y"} : (!graphc.loop) -> tensor<2xf64>
    %total = "graphc.reduce_sum"(%es) {axes = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
    %inner = "graphc.scan"(%c2) ({
    ^bb0(%u: index):
      %f = "graphc.exp"(%a) : (tensor<f64>) -> tensor<f64>
      %p = "graphc.add"(%xt, %f) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      "graphc.scan_collect"(%p) {state = "y", keep = "steps"} : (tensor<f64>) -> ()
      "graphc.scan_end"() : () -> ()
    }) {name = "inner", reverse = false} : (index) -> !graphc.loop
    %ps = "graphc.scan_trace"(%inner) {state = "y"} : (!graphc.loop) -> tensor<2xf64>
    %sum = "graphc.reduce_sum"(%ps) {axes = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
    "graphc.scan_collect"(%total) {state = "total", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_collect"(%sum) {state = "sum", keep = "steps"} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "total"} : (!graphc.loop) -> tensor<?xf64>
  %1 = "graphc.scan_trace"(%s) {state = "sum"} : (!graphc.loop) -> tensor<?xf64>
  return %0, %1 : tensor<?xf64>, tensor<?xf64>
}

// -----

// A check stays, and so does the read whose position it protects. A view alone stays too.
// CHECK-LABEL: @guarded
// CHECK: graphc.scan"
// CHECK: graphc.check
// CHECK: graphc.slice
// CHECK: graphc.broadcast_to
func.func @guarded(%x: tensor<?xf64>, %v: tensor<f64>, %i: index, %n: index) -> (tensor<?x1xf64>, tensor<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c0 : tensor<?xf64>
  %inside = arith.cmpi slt, %i, %size : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.check"(%inside, %i, %size) {message = "index {given} is out of bounds for size {expected}", error = "IndexError"} : (i1, index, index) -> ()
    %row = "graphc.slice"(%x, %i, %c1, %c1) : (tensor<?xf64>, index, index, index) -> tensor<1xf64>
    %wide = "graphc.broadcast_to"(%v, %size) : (tensor<f64>, index) -> tensor<?xf64>
    "graphc.scan_collect"(%row) {state = "row", keep = "steps"} : (tensor<1xf64>) -> ()
    "graphc.scan_collect"(%wide) {state = "wide", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "guarded", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "row"} : (!graphc.loop) -> tensor<?x1xf64>
  %1 = "graphc.scan_trace"(%s) {state = "wide"} : (!graphc.loop) -> tensor<?x?xf64>
  return %0, %1 : tensor<?x1xf64>, tensor<?x?xf64>
}

// -----

// A conditional that is the same in all iterations is hoisted as a whole, unless it can fail.
// CHECK-LABEL: @conditional
// CHECK: scf.if
// CHECK: graphc.exp
// CHECK: graphc.scan
// CHECK: scf.if
// CHECK: graphc.check
func.func @conditional(%x: tensor<?xf64>, %c: tensor<i1>, %n: index) -> (tensor<?x?xf64>, tensor<?x?xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %p = tensor.extract %c[] : tensor<i1>
    %a = scf.if %p -> tensor<?xf64> {
      %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
      scf.yield %e : tensor<?xf64>
    } else {
      scf.yield %x : tensor<?xf64>
    }
    %b = scf.if %p -> tensor<?xf64> {
      "graphc.check"(%p, %n, %n) {message = "no", error = "ValueError"} : (i1, index, index) -> ()
      %e = "graphc.sin"(%x) : (tensor<?xf64>) -> tensor<?xf64>
      scf.yield %e : tensor<?xf64>
    } else {
      scf.yield %x : tensor<?xf64>
    }
    "graphc.scan_collect"(%a) {state = "a", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_collect"(%b) {state = "b", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "s", reverse = false} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {state = "a"} : (!graphc.loop) -> tensor<?x?xf64>
  %1 = "graphc.scan_trace"(%s) {state = "b"} : (!graphc.loop) -> tensor<?x?xf64>
  return %0, %1 : tensor<?x?xf64>, tensor<?x?xf64>
}
