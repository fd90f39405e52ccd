// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-reuse-operands --split-input-file %s | filecheck %s

// Sizes that are known at run time only, if they are the same values.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %1 = arith.addf %0, %0 : f64
      memref.store %1, %b[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where positions differ: an element would be overwritten before it is read.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%j, %i] : memref<?x?xf64>
      %1 = arith.addf %0, %0 : f64
      memref.store %1, %b[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where the operand is read later.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %1 = arith.addf %0, %0 : f64
      memref.store %1, %b[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%a) : (memref<?x?xf64>) -> ()
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where the new buffer has contents before.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%b) : (memref<?x?xf64>) -> ()
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %1 = arith.addf %0, %0 : f64
      memref.store %1, %b[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where several iterations write one element.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %k = %c0 to %n step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %0 = memref.load %a[%i, %j] : memref<?x?xf64>
        %1 = arith.addf %0, %0 : f64
        memref.store %1, %b[%i, %j] : memref<?x?xf64>
      }
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Ranges of rows, and blocks of columns, do not overlap.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %p = %c0 to %n step %c1 {
    %lower = arith.muli %p, %c8 : index
    %end = arith.addi %lower, %c8 : index
    %upper = arith.minsi %end, %n : index
    scf.for %i = %lower to %upper step %c1 {
      scf.for %jj = %c0 to %n step %c8 {
        %next = arith.addi %jj, %c8 : index
        %last = arith.minsi %next, %n : index
        scf.for %j = %jj to %last step %c1 {
          %0 = memref.load %a[%i, %j] : memref<?x?xf64>
          %1 = arith.addf %0, %0 : f64
          memref.store %1, %b[%i, %j] : memref<?x?xf64>
        }
      }
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Ranges that overlap.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %p = %c0 to %n step %c1 {
    %end = arith.addi %p, %c8 : index
    scf.for %i = %p to %end step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %0 = memref.load %a[%i, %j] : memref<?x?xf64>
        %1 = arith.addf %0, %0 : f64
        memref.store %1, %b[%i, %j] : memref<?x?xf64>
      }
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where the nest reads what it has written, or uses a view.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %v = memref.cast %a : memref<?x?xf64> to memref<?x8xf64>
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %1 = memref.load %v[%j, %i] : memref<?x8xf64>
      %2 = arith.addf %0, %1 : f64
      memref.store %2, %b[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// One operand serves one of two results.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  %c = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %1 = arith.addf %0, %0 : f64
      memref.store %1, %b[%i, %j] : memref<?x?xf64>
      memref.store %0, %c[%i, %j] : memref<?x?xf64>
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  call @use(%c) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Not where it stands in a conditional: what is not computed is not written.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %0 = memref.load %a[%i, %j] : memref<?x?xf64>
      %is = arith.cmpi eq, %i, %j : index
      scf.if %is {
        memref.store %0, %b[%i, %j] : memref<?x?xf64>
      }
    }
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}

// -----

// Axes that are one in the loop.
// CHECK-LABEL: func.func @main
// CHECK: memref.alloc
// CHECK-NOT: memref.alloc
// CHECK: return
func.func private @fill(memref<?x?xf64>)
func.func private @use(memref<?x?xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.muli %n, %n : index
  %a = memref.alloc(%n, %n) : memref<?x?xf64>
  call @fill(%a) : (memref<?x?xf64>) -> ()
  %b = memref.alloc(%n, %n) : memref<?x?xf64>
  %x = memref.collapse_shape %a [[0, 1]] : memref<?x?xf64> into memref<?xf64>
  %y = memref.collapse_shape %b [[0, 1]] : memref<?x?xf64> into memref<?xf64>
  scf.for %i = %c0 to %count step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.addf %0, %0 : f64
    memref.store %1, %y[%i] : memref<?xf64>
  }
  call @use(%b) : (memref<?x?xf64>) -> ()
  return
}
