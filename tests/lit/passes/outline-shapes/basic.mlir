// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-shapes %s --split-input-file | filecheck %s

// Sizes and their check move to @shapes; the check of values stays in @main.
// CHECK-LABEL: func.func @main
// CHECK-NOT: bad size
// CHECK: bad value
// CHECK: graphc.exp
// CHECK-LABEL: func.func @shapes
// CHECK-SAME: -> index
// CHECK: bad size
// CHECK-NOT: bad value
// CHECK-NOT: graphc.exp
// CHECK: return %{{.*}} : index
func.func @main(%x: tensor<?xf64>, %i: tensor<?xi64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %m = tensor.dim %i, %c0 : tensor<?xi64>
  %same = arith.cmpi eq, %n, %m : index
  "graphc.check"(%same, %n, %m) {message = "bad size", error = "ValueError"} : (i1, index, index) -> ()
  %0 = "graphc.reduce_max"(%i) {axes = array<i64: 0>} : (tensor<?xi64>) -> tensor<i64>
  %1 = tensor.extract %0[] : tensor<i64>
  %2 = arith.index_cast %1 : i64 to index
  %less = arith.cmpi slt, %2, %n : index
  "graphc.check"(%less, %2, %n) {message = "bad value", error = "IndexError"} : (i1, index, index) -> ()
  %3 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// Static results have no sizes to return.
// CHECK-LABEL: func.func @shapes(%arg0: tensor<3xf64>) {
// CHECK-NEXT: return
func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  return %x : tensor<3xf64>
}

// -----

// Both regions give the same size: the conditional, its condition and its check stay in @main.
// CHECK-LABEL: func.func @main
// CHECK: scf.if
// CHECK: in a region
// CHECK-LABEL: func.func @shapes
// CHECK-NOT: scf.if
// CHECK-NOT: in a region
// CHECK-NOT: graphc.reduce_sum
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: return %[[N]] : index
func.func @main(%x: tensor<?xf64>, %k: tensor<i1>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %s = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %g = "graphc.gt"(%s, %zero) : (tensor<f64>, tensor<f64>) -> tensor<i1>
  %p = tensor.extract %g[] : tensor<i1>
  %r = scf.if %p -> tensor<?xf64> {
    %ok = tensor.extract %k[] : tensor<i1>
    "graphc.check"(%ok, %c0, %c0) {message = "in a region", error = "ValueError"} : (i1, index, index) -> ()
    %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  } else {
    %e = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  }
  return %r : tensor<?xf64>
}

// -----

// Sizes that differ: a select of both, and the condition that it needs, but none of the values.
// CHECK-LABEL: func.func @shapes
// CHECK: %[[P:.*]] = tensor.extract
// CHECK: %[[N:.*]] = arith.select %[[P]], %{{.*}}, %{{.*}} : index
// CHECK: return %[[N]] : index
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>, %c: tensor<i1>) -> tensor<?xf64> {
  %p = tensor.extract %c[] : tensor<i1>
  %r = scf.if %p -> tensor<?xf64> {
    %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  } else {
    %e = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  }
  return %r : tensor<?xf64>
}

// -----

// A size that the region checks: both regions are copied, with what the size needs and the check.
// CHECK-LABEL: func.func @shapes
// CHECK: %[[N:.*]] = scf.if %{{.*}} -> (index) {
// CHECK: too far
// CHECK: tensor.extract %arg1[%{{.*}}]
// CHECK-NOT: graphc.exp
// CHECK: } else {
// CHECK: tensor.dim %arg0
// CHECK: return %[[N]] : index
func.func @main(%x: tensor<?xf64>, %k: tensor<?xi64>, %c: tensor<i1>) -> tensor<?xf64> {
  %p = tensor.extract %c[] : tensor<i1>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.if %p -> tensor<?xf64> {
    %m = tensor.dim %k, %c0 : tensor<?xi64>
    %ok = arith.cmpi slt, %c3, %m : index
    "graphc.check"(%ok, %c3, %m) {message = "too far", error = "IndexError"} : (i1, index, index) -> ()
    %i = tensor.extract %k[%c3] : tensor<?xi64>
    %n = arith.index_cast %i : i64 to index
    %a = "graphc.slice"(%x, %c0, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
    %e = "graphc.exp"(%a) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  } else {
    %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  }
  return %r : tensor<?xf64>
}

// -----

// A size that depends on elements at given positions: @shapes tests the positions before it reads there.
// CHECK-LABEL: func.func @main
// CHECK: out of range
// CHECK-LABEL: func.func @shapes
// CHECK: out of range
// CHECK-NEXT: graphc.take
func.func @main(%x: tensor<?xi64>, %i: tensor<?xi64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xi64>
  %0 = "graphc.reduce_max"(%i) {axes = array<i64: 0>} : (tensor<?xi64>) -> tensor<i64>
  %1 = tensor.extract %0[] : tensor<i64>
  %2 = arith.index_cast %1 : i64 to index
  %less = arith.cmpi slt, %2, %m : index
  "graphc.check"(%less, %2, %m) {message = "out of range", error = "IndexError"} : (i1, index, index) -> ()
  %3 = "graphc.take"(%x, %i) {axis = 0 : i64} : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
  %4 = "graphc.reduce_sum"(%3) {axes = array<i64: 0>} : (tensor<?xi64>) -> tensor<i64>
  %5 = tensor.extract %4[] : tensor<i64>
  %n = arith.index_cast %5 : i64 to index
  %one = arith.constant dense<1.0> : tensor<f64>
  %r = "graphc.broadcast_to"(%one, %n) : (tensor<f64>, index) -> tensor<?xf64>
  return %r : tensor<?xf64>
}
