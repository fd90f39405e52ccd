// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math %s --split-input-file | filecheck %s

// A row of five elements is one vector, functions included; what is the same for all lanes is read once.
// CHECK-LABEL: @row
// CHECK-NOT: scf.for %{{.*}} to %c5
// CHECK: %[[H:.*]] = vector.load %arg0[%c0] : memref<5xf32, strided<[1], offset: ?>>, vector<5xf32>
// CHECK: %[[E:.*]] = vector.load %arg1[%arg3, %c0] : memref<?x?xf32>, vector<5xf32>
// CHECK: %[[S:.*]] = memref.load %arg2[] : memref<f32>
// CHECK: %[[SPLAT:.*]] = vector.broadcast %[[S]] : f32 to vector<5xf32>
// CHECK: arith.mulf %[[E]], %[[SPLAT]] : vector<5xf32>
// CHECK-NOT: math.tanh
// CHECK: vector.store %{{.*}}, %arg0[%c0] : memref<5xf32, strided<[1], offset: ?>>, vector<5xf32>
func.func @row(%h: memref<5xf32, strided<[1], offset: ?>>, %e: memref<?x?xf32>, %s: memref<f32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %j = %c0 to %c5 step %c1 {
    %0 = memref.load %h[%j] : memref<5xf32, strided<[1], offset: ?>>
    %1 = memref.load %e[%i, %j] : memref<?x?xf32>
    %2 = memref.load %s[] : memref<f32>
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %0, %3 : f32
    %5 = math.tanh %4 : f32
    memref.store %5, %h[%j] : memref<5xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// A sum in any order beside what is stored is that of the vector, so that whoever reads the row next finds one.
// CHECK-LABEL: @normalised
// CHECK-NOT: scf.for
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : vector<8xf64>
// CHECK: vector.store %[[P]], %arg0[%c0]
// CHECK: %[[T:.*]] = vector.reduction <add>, %[[P]], %arg2 fastmath<reassoc,contract> : vector<8xf64> into f64
// CHECK: vector.broadcast %[[T]] : f64 to vector<8xf64>
func.func @normalised(%h: memref<8xf64>, %e: memref<8xf64>, %zero: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %h[%j] : memref<8xf64>
    %1 = memref.load %e[%j] : memref<8xf64>
    %2 = arith.mulf %0, %1 : f64
    %3 = arith.addf %s, %2 fastmath<reassoc,contract> : f64
    memref.store %2, %h[%j] : memref<8xf64>
    scf.yield %3 : f64
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %0 = memref.load %h[%j] : memref<8xf64>
    %1 = arith.divf %0, %sum : f64
    memref.store %1, %h[%j] : memref<8xf64>
  }
  return
}

// -----

// Sums in their order, sums that are stored on the way, and what is no sum stay loops.
// CHECK-LABEL: @states
// CHECK-NOT: vector
// CHECK-COUNT-3: scf.for
// CHECK-NOT: vector
func.func @states(%h: memref<8xf64>, %zero: f64) -> (f64, f64, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %h[%j] : memref<8xf64>
    %1 = arith.addf %s, %0 : f64
    memref.store %0, %h[%j] : memref<8xf64>
    scf.yield %1 : f64
  }
  %b = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %h[%j] : memref<8xf64>
    %1 = arith.addf %s, %0 fastmath<reassoc> : f64
    memref.store %1, %h[%j] : memref<8xf64>
    scf.yield %1 : f64
  }
  %c = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %h[%j] : memref<8xf64>
    memref.store %0, %h[%j] : memref<8xf64>
    scf.yield %0 : f64
  }
  return %a, %b, %c : f64, f64, f64
}

// -----

// Left alone: elements apart, sums, another place in each step, flags in memory, one element, many.
// CHECK-LABEL: @others
// CHECK-NOT: vector
// CHECK-COUNT-7: scf.for
// CHECK-NOT: vector
func.func @others(%x: memref<?xf64, strided<[?]>>, %y: memref<?xf64>, %z: memref<?x?xf64>, %b: memref<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c17 = arith.constant 17 : index
  scf.for %j = %c0 to %c4 step %c1 {
    %0 = memref.load %x[%j] : memref<?xf64, strided<[?]>>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    %0 = memref.load %y[%c0] : memref<?xf64>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    %0 = memref.load %z[%j, %c0] : memref<?x?xf64>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    %0 = memref.load %z[%j, %j] : memref<?x?xf64>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    %0 = memref.load %b[%j] : memref<?xi1>
    %1 = arith.uitofp %0 : i1 to f64
    memref.store %1, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c1 step %c1 {
    %0 = memref.load %z[%c0, %j] : memref<?x?xf64>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  scf.for %j = %c0 to %c17 step %c1 {
    %0 = memref.load %z[%c0, %j] : memref<?x?xf64>
    memref.store %0, %y[%j] : memref<?xf64>
  }
  return
}

// -----

// So does a sum beside one stored array, alone in a loop: LLVM makes vectors over that one.
// CHECK-LABEL: @alone
// CHECK-NOT: vector
// CHECK-COUNT-2: scf.for
// CHECK-NOT: vector
func.func @alone(%x: memref<200x3xf64>, %y: memref<200x3xf64>, %t: memref<200xf64>, %zero: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %c0 to %c200 step %c1 {
    %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%s = %zero) -> f64 {
      %0 = memref.load %x[%i, %j] : memref<200x3xf64>
      %1 = math.sqrt %0 : f64
      %2 = arith.addf %s, %1 fastmath<reassoc> : f64
      memref.store %1, %y[%i, %j] : memref<200x3xf64>
      scf.yield %2 : f64
    }
    memref.store %sum, %t[%i] : memref<200xf64>
  }
  return
}
