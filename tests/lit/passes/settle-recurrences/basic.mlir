// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-settle-recurrences=block=8 --split-input-file --mlir-pass-statistics %s 2>&1 | filecheck %s

// The last step of each eight is compared with the one before it; what is left stores the same.
// CHECK: (S) {{ *}}2 loops
// CHECK-LABEL: func.func @decay
// CHECK-SAME: %[[Y:.*]]: memref<?xf64>, %[[N:.*]]: index, %[[START:.*]]: f64
// CHECK: %[[BLOCKS:.*]]:3 = scf.while (%[[I:.*]] = %c0, %[[MOVES:.*]] = %true, %[[G:.*]] = %[[START]])
// CHECK: arith.cmpi slt, %[[I]], %[[N]]
// CHECK: arith.andi %{{.*}}, %[[MOVES]]
// CHECK: scf.condition
// CHECK: ^bb0(%[[FROM:.*]]: index, %{{.*}}: i1, %[[STATE:.*]]: f64)
// CHECK: %[[TO:.*]] = arith.addi %[[FROM]], %c8
// CHECK: %[[END:.*]] = arith.minsi %[[TO]], %[[N]]
// CHECK: %[[STEPS:.*]]:2 = scf.for %{{.*}} = %[[FROM]] to %[[END]] step %c1 iter_args(%[[NOW:.*]] = %[[STATE]], %{{.*}} = %[[STATE]])
// CHECK: %[[NEXT:.*]] = arith.mulf %[[NOW]]
// CHECK: memref.store %[[NEXT]]
// CHECK: scf.yield %[[NEXT]], %[[NOW]]
// CHECK: %[[A:.*]] = arith.bitcast %[[STEPS]]#0 : f64 to i64
// CHECK: %[[B:.*]] = arith.bitcast %[[STEPS]]#1 : f64 to i64
// CHECK: %[[DIFFER:.*]] = arith.cmpi ne, %[[A]], %[[B]]
// CHECK: scf.yield %[[END]], %[[DIFFER]], %[[STEPS]]#0
// CHECK: scf.for %[[J:.*]] = %[[BLOCKS]]#0 to %[[N]] step %c1 {
// CHECK: %[[SAME:.*]] = arith.mulf %[[BLOCKS]]#2
// CHECK: memref.store %[[SAME]], %[[Y]][%[[J]]]
// CHECK: return %[[BLOCKS]]#2
func.func @decay(%y: memref<?xf64>, %n: index, %start: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %factor = arith.constant 0.9 : f64
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%g = %start) -> (f64) {
    %next = arith.mulf %g, %factor : f64
    memref.store %next, %y[%i] : memref<?xf64>
    scf.yield %next : f64
  }
  return %last : f64
}

// -----

// Several states; a number that is read from an argument; places that go down.
// CHECK-LABEL: func.func @two
// CHECK: scf.while
// CHECK: memref.load
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.bitcast %{{.*}} : f64 to i64
// CHECK: arith.ori
func.func @two(%a: memref<f64>, %y: memref<?xf64>, %n: index, %s: f32, %t: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s, %h = %t) -> (f32, f64) {
    %0 = memref.load %a[] : memref<f64>
    %1 = arith.mulf %h, %0 : f64
    %2 = arith.truncf %1 : f64 to f32
    %3 = arith.addf %g, %2 : f32
    %4 = arith.subi %n, %i : index
    memref.store %1, %y[%4] : memref<?xf64>
    scf.yield %3, %1 : f32, f64
  }
  return %r#1 : f64
}

// -----

// What may change in a later step.
// CHECK-LABEL: func.func @sequence
// CHECK-NOT: scf.while
// CHECK-LABEL: func.func @number_of_the_step
// CHECK-NOT: scf.while
// CHECK-LABEL: func.func @counter
// CHECK-NOT: scf.while
// CHECK-LABEL: func.func @written
// CHECK-NOT: scf.while
// CHECK-LABEL: func.func @stored_number
// CHECK-NOT: scf.while
// CHECK-LABEL: func.func @few
// CHECK-NOT: scf.while
func.func @sequence(%x: memref<?xf64>, %n: index, %s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s) -> (f64) {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.mulf %g, %0 : f64
    scf.yield %1 : f64
  }
  return %r : f64
}
func.func @number_of_the_step(%n: index, %s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s) -> (f64) {
    %0 = arith.index_cast %i : index to i64
    %1 = arith.sitofp %0 : i64 to f64
    %2 = arith.mulf %g, %1 : f64
    scf.yield %2 : f64
  }
  return %r : f64
}
func.func @counter(%n: index, %s: i64) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s) -> (i64) {
    %0 = arith.addi %g, %s : i64
    scf.yield %0 : i64
  }
  return %r : i64
}
func.func @written(%y: memref<?xf64>, %n: index, %s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %part = memref.subview %y[0] [1] [1] : memref<?xf64> to memref<1xf64, strided<[1]>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s) -> (f64) {
    %0 = memref.load %part[%c0] : memref<1xf64, strided<[1]>>
    %1 = arith.mulf %g, %0 : f64
    memref.store %1, %y[%i] : memref<?xf64>
    scf.yield %1 : f64
  }
  return %r : f64
}
func.func @stored_number(%y: memref<?xindex>, %n: index, %s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%g = %s) -> (f64) {
    %0 = arith.mulf %g, %s : f64
    memref.store %i, %y[%i] : memref<?xindex>
    scf.yield %0 : f64
  }
  return %r : f64
}
func.func @few(%s: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %i = %c0 to %c32 step %c1 iter_args(%g = %s) -> (f64) {
    %0 = arith.mulf %g, %s : f64
    scf.yield %0 : f64
  }
  return %r : f64
}

// -----

// Each step waits for the one before it: LLVM makes no copies of it.
// CHECK-LABEL: func.func @driven
// CHECK: memref.store
// CHECK: } {loop_annotation = #{{.*}}}
func.func @driven(%x: memref<?xf64>, %y: memref<?xf64>, %n: index, %start: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %factor = arith.constant 0.9 : f64
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%g = %start) -> (f64) {
    %kept = arith.mulf %g, %factor : f64
    %new = memref.load %x[%i] : memref<?xf64>
    %next = arith.addf %kept, %new : f64
    memref.store %next, %y[%i] : memref<?xf64>
    scf.yield %next : f64
  }
  return
}

// -----

// Sums that may be computed in any order, states that only pass a value on, and few steps are LLVM's.
// CHECK-LABEL: func.func @free
// CHECK-NOT: loop_annotation
// CHECK: return
func.func @free(%x: memref<?xf64>, %y: memref<?xf64>, %n: index, %start: f64) -> (f64, f64, f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> (f64) {
    %new = memref.load %x[%i] : memref<?xf64>
    %next = arith.addf %s, %new fastmath<reassoc> : f64
    scf.yield %next : f64
  }
  %delayed = scf.for %i = %c0 to %n step %c1 iter_args(%before = %start) -> (f64) {
    %new = memref.load %x[%i] : memref<?xf64>
    %difference = arith.subf %new, %before : f64
    memref.store %difference, %y[%i] : memref<?xf64>
    scf.yield %new : f64
  }
  %few = scf.for %i = %c0 to %c4 step %c1 iter_args(%g = %start) -> (f64) {
    %next = arith.mulf %g, %g : f64
    scf.yield %next : f64
  }
  return %sum, %delayed, %few : f64, f64, f64
}
