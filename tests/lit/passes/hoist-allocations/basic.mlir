// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-hoist-allocations %s | filecheck %s

// The size is the same in all iterations; what it is computed with moves along.
// CHECK-LABEL: func.func @invariant
func.func @invariant(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[DIM:.+]] = memref.dim
  // CHECK: %[[SUM:.+]] = arith.addi %[[DIM]]
  // CHECK: %[[BUFFER:.+]] = memref.alloc(%[[SUM]])
  // CHECK: scf.for
  // CHECK-NOT: memref.alloc
  scf.for %i = %c0 to %n step %c1 {
    %d = memref.dim %x, %c0 : memref<?xf64>
    %s = arith.addi %d, %c1 : index
    %b = memref.alloc(%s) : memref<?xf64>
    %v = memref.load %x[%i] : memref<?xf64>
    memref.store %v, %b[%c0] : memref<?xf64>
    scf.yield
  }
  return
}

// Out of one loop only: the size is that of the outer iteration, which gives the memory back at its end.
// CHECK-LABEL: func.func @nested
func.func @nested(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  // CHECK: scf.for %[[I:.+]] =
  // CHECK-NEXT: %[[MARK:.+]] = func.call @graphc_mark()
  // CHECK-NEXT: memref.alloc(%[[I]])
  // CHECK-NEXT: scf.for
  // CHECK: func.call @graphc_release_to(%[[MARK]])
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %i step %c1 {
      %b = memref.alloc(%i) : memref<?xf64>
      memref.store %z, %b[%j] : memref<?xf64>
    }
  }
  return
}

// What an iteration hands on must be another buffer than the next one uses.
// CHECK-LABEL: func.func @handed_on
func.func @handed_on(%first: memref<4xf64>, %n: index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for
  // CHECK: memref.alloc
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%p = %first) -> (memref<4xf64>) {
    %b = memref.alloc() : memref<4xf64>
    %v = memref.load %p[%c0] : memref<4xf64>
    memref.store %v, %b[%c1] : memref<4xf64>
    scf.yield %b : memref<4xf64>
  }
  %r = memref.load %last[%c1] : memref<4xf64>
  return %r : f64
}

// A division could trap where the loop would not have run.
// CHECK-LABEL: func.func @division
func.func @division(%n: index, %d: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  // CHECK: scf.for
  // CHECK: arith.divsi
  // CHECK: memref.alloc
  scf.for %i = %c0 to %n step %c1 {
    %s = arith.divsi %n, %d : index
    %b = memref.alloc(%s) : memref<?xf64>
    memref.store %z, %b[%c0] : memref<?xf64>
  }
  return
}

// Out of a region of a conditional goes what is as large as an array; a size that a condition may refuse stays.
// CHECK-LABEL: func.func @guarded
func.func @guarded(%x: memref<?xf64>, %n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  // CHECK: %[[D:.+]] = memref.dim
  // CHECK: memref.alloc(%[[D]]) : memref<?xf64>
  // CHECK: scf.for
  // CHECK: scf.if
  // CHECK: memref.alloc(%{{.+}}) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.if %p {
      %d = memref.dim %x, %c0 : memref<?xf64>
      %a = memref.alloc(%d) : memref<?xf64>
      memref.store %z, %a[%c0] : memref<?xf64>
      %b = memref.alloc(%n, %n) : memref<?x?xf64>
      memref.store %z, %b[%c0, %c0] : memref<?x?xf64>
    }
  }
  return
}
