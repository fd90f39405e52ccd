// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-convert-to-linalg --canonicalize --eliminate-empty-tensors --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --split-input-file %s | filecheck %s

// A donated argument is the buffer of its result; the loop reads and writes it at the same position.
// CHECK-LABEL: module attributes {{.*}}graphc.donated = {kept = [], pairs = [array<i64: 0, 0>], spares = []}
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: memref<?xf64>) {
// CHECK-NOT: alloc
// CHECK: linalg.generic {{.*}} ins(%[[X]] {{.*}} outs(%[[X]]
// CHECK-NOT: memref.copy
// CHECK: return
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
    %0 = "graphc.sqr"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    return %0 : tensor<?xf64>
  }
}

// -----

// The sum of the old values comes before the update, although it stands after it.
// CHECK-LABEL: module attributes {{.*}}graphc.donated = {kept = [], pairs = [array<i64: 0, 0>], spares = []}
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: memref<8xf64>, %[[Y:[a-z0-9]+]]: memref<2xf64>, %[[S:[a-z0-9]+]]: memref<f64>) {
// CHECK-NOT: alloc
// CHECK: linalg.generic {{.*}} ins(%[[X]] {{.*}} outs(%[[S]]
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %[[X]]
// CHECK-NOT: memref.copy
// CHECK: return
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<8xf64>, %y: tensor<2xf64>) -> (tensor<8xf64>, tensor<f64>) {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = "graphc.update_slice"(%x, %y, %c1, %c2, %c1) {accumulate = false} : (tensor<8xf64>, tensor<2xf64>, index, index, index) -> tensor<8xf64>
    %1 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<8xf64>) -> tensor<f64>
    return %0, %1 : tensor<8xf64>, tensor<f64>
  }
}

// -----

// The loop also adds up what it overwrites: it reads the old element where it writes the new one.
// CHECK-LABEL: func.func @main(%{{[a-z0-9]+}}: memref<?xf64>, %{{[a-z0-9]+}}: memref<f64>) {
// CHECK-NOT: alloc
// CHECK: linalg.generic
// CHECK: ^bb0(%{{[a-z0-9_]+}}: f64, %[[OLD:[a-z0-9_]+]]: f64, %[[SUM:[a-z0-9_]+]]: f64):
// CHECK-DAG: arith.mulf %[[OLD]], %[[OLD]]
// CHECK-DAG: arith.addf %[[SUM]], %[[OLD]]
// CHECK-NOT: memref.copy
// CHECK: return
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>, keeps_on_failure}]} {
  func.func @main(%x: tensor<?xf64>) -> (tensor<?xf64>, tensor<f64>) {
    %0 = "graphc.sqr"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    %1 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
    return %0, %1 : tensor<?xf64>, tensor<f64>
  }
}

// -----

// Other elements are read.
// CHECK-LABEL: module attributes {{.*}}kept = [{{.*}}reads other elements{{.*}}pairs = []
// CHECK: func.func @main(%{{[a-z0-9]+}}: memref<4xf64>, %{{[a-z0-9]+}}: memref<4xf64>) {
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %cm = arith.constant -1 : index
    %0 = "graphc.slice"(%x, %c3, %c4, %cm) : (tensor<4xf64>, index, index, index) -> tensor<4xf64>
    %1 = "graphc.add"(%x, %0) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %1 : tensor<4xf64>
  }
}

// -----

// A check that needs the new value would come too late for what must be kept if it fails.
// CHECK-LABEL: module attributes {{.*}}kept = [{{.*}}graphc.check can fail after the result has been computed{{.*}}pairs = []
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>, keeps_on_failure}]} {
  func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
    %c0 = arith.constant 0 : index
    %0 = "graphc.sqr"(%x) : (tensor<4xi64>) -> tensor<4xi64>
    %1 = tensor.extract %0[%c0] : tensor<4xi64>
    %2 = arith.index_cast %1 : i64 to index
    %3 = arith.cmpi eq, %2, %c0 : index
    "graphc.check"(%3, %2, %c0) {message = "m", error = "ValueError"} : (i1, index, index) -> ()
    return %0 : tensor<4xi64>
  }
}

// -----

// A product is computed in an argument that is only read before.
// CHECK-LABEL: module attributes {{.*}}pairs = [array<i64: 1, 0>]
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: memref<4x4xf64>, %[[Y:[a-z0-9]+]]: memref<4x4xf64>, %[[S:[a-z0-9]+]]: memref<f64>) {
// CHECK-NOT: alloc
// CHECK: linalg.generic {{.*}} ins(%[[Y]] {{.*}} outs(%[[S]]
// CHECK: linalg.fill {{.*}} outs(%[[Y]]
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[X]] {{.*}} outs(%[[Y]]
// CHECK-NOT: memref.copy
// CHECK: return
module attributes {graphc.donate = [{argument = 1 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<4x4xf64>, %y: tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<f64>) {
    %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    %1 = "graphc.reduce_sum"(%y) {axes = array<i64: 0, 1>} : (tensor<4x4xf64>) -> tensor<f64>
    return %0, %1 : tensor<4x4xf64>, tensor<f64>
  }
}

// -----

// CHECK-LABEL: module attributes {{.*}}kept = [{{.*}}graphc.matmul reads it while the result is computed{{.*}}pairs = []
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<4x4xf64>, %y: tensor<4x4xf64>) -> tensor<4x4xf64> {
    %0 = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    return %0 : tensor<4x4xf64>
  }
}

// -----

// Nobody reads the argument: callers may pass it as the buffer of the result, which is an argument of its own.
// CHECK-LABEL: module attributes {{.*}}kept = [], pairs = [], spares = [array<i64: 1, 0>]
// CHECK: func.func @main(%{{[a-z0-9]+}}: memref<?x?xf64>, %{{[a-z0-9]+}}: memref<?x?xf64>, %{{[a-z0-9]+}}: memref<?x?xf64>) {
module attributes {graphc.donate = [{argument = 1 : i64, results = array<i64: 0>}]} {
  func.func @main(%x: tensor<?x?xf64>, %y: tensor<?x?xf64>) -> tensor<?x?xf64> {
    %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
    return %0 : tensor<?x?xf64>
  }
}
