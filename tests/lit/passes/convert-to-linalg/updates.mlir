// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-convert-to-linalg --canonicalize --eliminate-empty-tensors --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --split-input-file %s | filecheck %s

// Updates of one array store in the memory of the result, which first gets the older elements; no tensor is
// handed on from one to the next.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8xf64>, %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[R:[a-z0-9]+]]: memref<8xf64>)
// CHECK-NOT: alloc
// CHECK: memref.copy %{{.*}}, %[[R]]
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: memref.load %[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<8xf64>, %y: tensor<2xf64>) -> tensor<8xf64> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.update_slice"(%x, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = true} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

// What nobody else reads is computed there, too.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8xf64>, %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[R:[a-z0-9]+]]: memref<8xf64>)
// CHECK-NOT: alloc
// CHECK: linalg.generic {{.*}} ins(%[[X]] {{.*}} outs(%[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<8xf64>, %y: tensor<2xf64>) -> tensor<8xf64> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = "graphc.exp"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %0 = "graphc.update_slice"(%e, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

// What has another reader is computed elsewhere: the memory of the updates changes.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8xf64>, %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[R:[a-z0-9]+]]: memref<8xf64>, %[[S:[a-z0-9]+]]: memref<8xf64>)
// CHECK: linalg.generic {{.*}} outs(%[[S]]
// CHECK: memref.copy %{{.*}}, %[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
func.func @main(%x: tensor<8xf64>, %y: tensor<2xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = "graphc.exp"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %0 = "graphc.update_slice"(%e, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  return %1, %e : tensor<8xf64>, tensor<8xf64>
}

// -----

// One element repeated is written there, without an array of its own.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[R:[a-z0-9]+]]: memref<8xf64>)
// CHECK-NOT: alloc
// CHECK-NOT: memref.copy
// CHECK: outs(%[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%y: tensor<2xf64>) -> tensor<8xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %z = "graphc.broadcast_to"(%zero, %c8) : (tensor<f64>, index) -> tensor<8xf64>
  %0 = "graphc.update_slice"(%z, %y, %c1, %c2, %c1) {accumulate = true} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = true} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// -----

// Where the argument is donated, they store in its memory.
// CHECK-LABEL: module attributes {{.*}}graphc.donated = {kept = [], pairs = [array<i64: 0, 0>], spares = []}
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: memref<8xf64>, %{{[a-z0-9]+}}: memref<2xf64>) {
// CHECK-NOT: alloc
// CHECK: memref.store %{{.*}}, %[[X]]
// CHECK: memref.store %{{.*}}, %[[X]]
// CHECK-NOT: memref.copy
// CHECK: return
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<8xf64>, %y: tensor<2xf64>) -> tensor<8xf64> {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = "graphc.update_slice"(%x, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
    %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
    return %1 : tensor<8xf64>
  }
}

// -----

// What is between two updates has a reader: memory is bufferization's choice.
// CHECK-LABEL: func.func @read_between(
// CHECK-SAME: %[[X:[a-z0-9]+]]: memref<8xf64>, %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[R:[a-z0-9]+]]: memref<8xf64>, %[[S:[a-z0-9]+]]: memref<f64>)
// CHECK: %[[FIRST:[a-z0-9_]+]] = memref.alloc()
// CHECK: memref.store %{{.*}}, %[[FIRST]]
// CHECK: ins(%[[FIRST]] {{.*}} outs(%[[S]]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: return
func.func @read_between(%x: tensor<8xf64>, %y: tensor<2xf64>) -> (tensor<8xf64>, tensor<f64>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.update_slice"(%x, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  %s = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<8xf64>) -> tensor<f64>
  %1 = "graphc.update_slice"(%0, %y, %c2, %c2, %c2) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
  return %1, %s : tensor<8xf64>, tensor<f64>
}
