// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-loop-fusion --split-input-file %s | filecheck %s

// The second nest reads row i of what the first wrote in row i.
// CHECK-LABEL: @rows
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for
// CHECK: scf.for
// CHECK: }
// CHECK: }
// CHECK-NOT: scf.for
func.func @rows(%x: memref<?x?xf64>, %t: memref<?x?xf64>, %y: memref<?x?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x?xf64>
      memref.store %0, %t[%i, %j] : memref<?x?xf64>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %t[%i, %j] : memref<?x?xf64>
      memref.store %0, %y[%i, %j] : memref<?x?xf64>
    }
  }
  return
}

// -----

// The second nest reads other rows (a transpose): the nests stay apart.
// CHECK-LABEL: @transposed
// CHECK-COUNT-4: scf.for
func.func @transposed(%x: memref<?x?xf64>, %t: memref<?x?xf64>, %y: memref<?x?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x?xf64>
      memref.store %0, %t[%i, %j] : memref<?x?xf64>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %t[%j, %i] : memref<?x?xf64>
      memref.store %0, %y[%i, %j] : memref<?x?xf64>
    }
  }
  return
}

// -----

// Different bounds.
// CHECK-LABEL: @bounds
// CHECK-COUNT-4: scf.for
func.func @bounds(%x: memref<?x?xf64>, %y: memref<?x?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant 1.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      memref.store %v, %x[%i, %j] : memref<?x?xf64>
    }
  }
  scf.for %i = %c0 to %m step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      memref.store %v, %y[%i, %j] : memref<?x?xf64>
    }
  }
  return
}

// -----

// A call might touch any buffer.
// CHECK-LABEL: @call
// CHECK-COUNT-2: scf.for
func.func private @f()
func.func @call(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @f() : () -> ()
  }
  scf.for %i = %c0 to %n step %c1 {
    func.call @f() : () -> ()
  }
  return
}
