// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scatter --canonicalize --cse --split-input-file %s | filecheck %s

// Of rows that are set the last write stays; each of its elements has a thread.
// CHECK: gpu.func @scatter_5
// CHECK: %[[AT:.*]] = arith.divui %[[N:.*]], %[[M:.*]] : index
// CHECK: %[[COLUMN:.*]] = arith.remui %[[N]], %[[M]] : index
// CHECK: scf.while
// CHECK-NOT: scf.for
// CHECK: %[[VALUE:.*]] = memref.load %{{.*}}[%{{.*}}, %[[COLUMN]]] : memref<?x?xf32>
// CHECK: memref.store %[[VALUE]], %{{.*}}[%{{.*}}, %[[COLUMN]]] : memref<?x?xf32>
// CHECK: func.func @set
// CHECK: %[[ROWS:.*]] = memref.dim %arg0
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[ROWS]], %c4294967296
// CHECK: "graphc.check"(%[[FEW]], %[[ROWS]], %c4294967296) {error = "ValueError", message = "set_subtensor or inc_subtensor: writes into {given} rows, and a device sorts fewer than {expected}
// CHECK: %[[FEWER:.*]] = arith.cmpi slt, %arg3, %c4294967296
// CHECK: "graphc.check"(%[[FEWER]], %arg3, %c4294967296)
func.func @set(%x: memref<?x?xf32>, %i: memref<?xi64>, %y: memref<?x?xf32>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %i[%k] : memref<?xi64>
      %row = arith.index_cast %0 : i64 to index
      %2 = memref.load %y[%k, %j] : memref<?x?xf32>
      memref.store %2, %x[%row, %j] : memref<?x?xf32>
    }
  }
  return
}

// -----

// What is added is read where the loop writes: it depends on the order of all writes.
// CHECK-NOT: gpu.func
// CHECK: func.func @reads
// CHECK: scf.for
func.func @reads(%x: memref<?xf32>, %i: memref<?xi64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %0 = memref.load %i[%k] : memref<?xi64>
    %row = arith.index_cast %0 : i64 to index
    %1 = memref.load %x[%row] : memref<?xf32>
    %2 = memref.load %x[%k] : memref<?xf32>
    %3 = arith.addf %1, %2 : f32
    memref.store %3, %x[%row] : memref<?xf32>
  }
  return
}

// -----

// The position depends on the column: two columns may write one element.
// CHECK-NOT: gpu.func
// CHECK: func.func @moves
// CHECK: scf.for
func.func @moves(%x: memref<?x?xf32>, %i: memref<?x?xi64>, %y: memref<?x?xf32>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %i[%k, %j] : memref<?x?xi64>
      %row = arith.index_cast %0 : i64 to index
      %2 = memref.load %y[%k, %j] : memref<?x?xf32>
      memref.store %2, %x[%row, %j] : memref<?x?xf32>
    }
  }
  return
}

// -----

// No position is read: iterations are independent, which another pass sees.
// CHECK-NOT: gpu.func
// CHECK: func.func @plain
// CHECK: scf.for
func.func @plain(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %2 = memref.load %y[%k] : memref<?xf32>
    memref.store %2, %x[%k] : memref<?xf32>
  }
  return
}

// -----

// Sizes that are known to be few need no check; those that are known to be many fail whenever they are asked for.
// CHECK: func.func @few
// CHECK-NOT: graphc.check
// CHECK: func.func @many
// CHECK: "graphc.check"(%false, %c4294967296, %c4294967296)
func.func @few(%x: memref<9xf32>, %i: memref<7xi64>, %y: memref<7xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %k = %c0 to %c7 step %c1 {
    %0 = memref.load %i[%k] : memref<7xi64>
    %row = arith.index_cast %0 : i64 to index
    %2 = memref.load %y[%k] : memref<7xf32>
    memref.store %2, %x[%row] : memref<9xf32>
  }
  return
}
func.func @many(%x: memref<4294967296xi8>, %i: memref<7xi64>, %y: memref<7xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %k = %c0 to %c7 step %c1 {
    %0 = memref.load %i[%k] : memref<7xi64>
    %row = arith.index_cast %0 : i64 to index
    %2 = memref.load %y[%k] : memref<7xi8>
    memref.store %2, %x[%row] : memref<4294967296xi8>
  }
  return
}
