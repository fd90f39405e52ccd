// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-convert-to-linalg --canonicalize --eliminate-empty-tensors --split-input-file %s | filecheck %s

// Each region computes in the caller's memory; the sum is a scalar of the new operation.
// CHECK-LABEL: @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?xf64>
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<?xf64>
// CHECK-NOT: memref.alloc
// CHECK: %[[S:.*]] = scf.if %{{.*}} -> (f64) {
// CHECK: %[[A:.*]] = memref.reinterpret_cast %[[OUT]]
// CHECK: bufferization.to_tensor %[[A]] restrict writable
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[A]]
// CHECK: scf.yield %{{.*}} : f64
// CHECK: } else {
// CHECK: %[[B:.*]] = memref.reinterpret_cast %[[OUT]]
// CHECK: linalg.generic
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[B]]
// CHECK: scf.yield %cst{{.*}} : f64
// CHECK: memref.store %[[S]]
func.func @main(%x: tensor<?xf64>, %c: tensor<i1>) -> (tensor<?xf64>, tensor<f64>) {
  %p = tensor.extract %c[] : tensor<i1>
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %r:2 = scf.if %p -> (tensor<?xf64>, tensor<f64>) {
    %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    %s = "graphc.reduce_sum"(%e) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
    scf.yield %e, %s : tensor<?xf64>, tensor<f64>
  } else {
    %a = "graphc.add"(%x, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
    %z = arith.constant dense<0.0> : tensor<f64>
    scf.yield %a, %z : tensor<?xf64>, tensor<f64>
  }
  return %r#0, %r#1 : tensor<?xf64>, tensor<f64>
}

// -----

// A captured value is copied in its region, one that nobody reads is not; upstream makes a select of the first.
// CHECK-LABEL: @captured
// CHECK: scf.if
// CHECK: memref.copy
// CHECK: linalg.generic
// CHECK: } else {
// CHECK: memref.copy
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @captured(%x: tensor<?xf64>, %y: tensor<?xf64>, %c: tensor<i1>) -> (tensor<?xf64>, tensor<?xf64>) {
  %p = tensor.extract %c[] : tensor<i1>
  %c0 = arith.constant 0 : index
  %r = arith.select %p, %x, %y : tensor<?xf64>
  %s = scf.if %p -> tensor<?xf64> {
    %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  } else {
    %n = tensor.empty(%c0) : tensor<?xf64>
    scf.yield %n : tensor<?xf64>
  }
  return %r, %s : tensor<?xf64>, tensor<?xf64>
}

// -----

// The size of the result: that of the region that is chosen, computed before it where that cannot fail.
// CHECK-LABEL: func.func @sizes
// CHECK: %[[P:.*]] = arith.cmpi ne
// CHECK: %[[K:.*]] = arith.maxsi
// CHECK: %[[N:.*]] = arith.select %[[P]], %[[K]], %{{.*}} : index
// CHECK: memref.alloc(%[[N]])
// CHECK: scf.if %[[P]]
func.func @sizes(%x: tensor<?xf64>, %k: tensor<i64>, %c: tensor<i1>) -> tensor<f64> {
  %p = tensor.extract %c[] : tensor<i1>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.if %p -> tensor<?xf64> {
    %i = tensor.extract %k[] : tensor<i64>
    %n = arith.index_cast %i : i64 to index
    %a = "graphc.slice"(%x, %c0, %n, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
    %e = "graphc.exp"(%a) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  } else {
    %e = "graphc.tanh"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %e : tensor<?xf64>
  }
  %s = "graphc.reduce_sum"(%r) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %s : tensor<f64>
}
