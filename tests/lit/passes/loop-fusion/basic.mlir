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

// -----

// A function of numbers of short rows stays apart: LLVM makes vectors over rows. Other work, and many rows, do not.
// CHECK-LABEL: @short_rows
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @short_rows(%x: memref<200x3xf64>, %t: memref<200x3xf64>, %s: memref<200xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %c0 to %c200 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<200x3xf64>
      memref.store %0, %t[%i, %j] : memref<200x3xf64>
    }
  }
  scf.for %i = %c0 to %c200 step %c1 {
    %0 = memref.load %s[%i] : memref<200xf64>
    %1 = math.log %0 : f64
    memref.store %1, %s[%i] : memref<200xf64>
  }
  scf.for %i = %c0 to %c200 step %c1 {
    %0 = memref.load %s[%i] : memref<200xf64>
    scf.for %j = %c0 to %c3 step %c1 {
      %1 = memref.load %t[%i, %j] : memref<200x3xf64>
      %2 = arith.subf %1, %0 : f64
      memref.store %2, %x[%i, %j] : memref<200x3xf64>
    }
  }
  return
}

// CHECK-LABEL: @many_rows
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @many_rows(%x: memref<9000x3xf64>, %t: memref<9000x3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9000 = arith.constant 9000 : index
  scf.for %i = %c0 to %c9000 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<9000x3xf64>
      memref.store %0, %t[%i, %j] : memref<9000x3xf64>
    }
  }
  scf.for %i = %c0 to %c9000 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %0 = memref.load %t[%i, %j] : memref<9000x3xf64>
      %1 = math.exp %0 : f64
      memref.store %1, %x[%i, %j] : memref<9000x3xf64>
    }
  }
  return
}

// CHECK-LABEL: @moved_rows
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @moved_rows(%x: memref<200x3xf64>, %t: memref<200x3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %c0 to %c200 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %0 = memref.load %x[%i, %j] : memref<200x3xf64>
      memref.store %0, %t[%i, %j] : memref<200x3xf64>
    }
  }
  scf.for %i = %c0 to %c200 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %0 = memref.load %t[%i, %j] : memref<200x3xf64>
      %1 = math.sqrt %0 : f64
      memref.store %1, %x[%i, %j] : memref<200x3xf64>
    }
  }
  return
}
