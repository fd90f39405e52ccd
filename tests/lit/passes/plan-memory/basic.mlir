// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-plan-memory --canonicalize --cse --split-input-file %s | filecheck %s

// One unknown factor: offsets are multiples of it, rounded up to 64; a size beyond all memory becomes -1.
// CHECK-LABEL: func.func @one_factor
func.func @one_factor(%x: memref<?xf64>, %y: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  // CHECK: %[[N:.+]] = memref.dim
  %n = memref.dim %x, %c0 : memref<?xf64>
  // CHECK: %[[PAST:.+]] = arith.addi %{{.+}}, %c63
  // CHECK: %[[UNIT:.+]] = arith.andi %[[PAST]], %c-64
  // CHECK: %[[BYTES:.+]] = arith.muli %[[UNIT]], %c16
  // CHECK: %[[FITS:.+]] = arith.cmp{{.+}}
  // CHECK: %[[ASKED:.+]] = arith.select %[[FITS]], %[[BYTES]], %c-1
  // CHECK: %[[MEMORY:.+]] = call @graphc_workspace_0(%[[ASKED]])
  %a = memref.alloc(%n) : memref<?xf64>
  %b = memref.alloc(%n) : memref<?xf64>
  memref.copy %x, %a : memref<?xf64> to memref<?xf64>
  memref.copy %a, %b : memref<?xf64> to memref<?xf64>
  memref.copy %b, %y : memref<?xf64> to memref<?xf64>
  return
}

// -----

// Sizes of several kinds: places are found at run time. `%m` is read before the first buffer is used.
// CHECK-LABEL: func.func @several
func.func @several(%x: memref<?xf64>, %count: memref<i64>, %y: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  // CHECK: memref.load %{{.+}}[] : memref<i64>
  // CHECK: %[[SIZES:.+]] = memref.alloca() : memref<2xi64>
  // CHECK: memref.store %{{.+}}, %[[SIZES]][%c0]
  // CHECK: memref.store %{{.+}}, %[[SIZES]][%c1]
  // CHECK: %[[MEMORY:.+]] = call @graphc_plan_0
  // CHECK: call @graphc_planned_buffer(%[[MEMORY]], %c2,
  %a = memref.alloc(%n) : memref<?xf64>
  memref.copy %x, %a : memref<?xf64> to memref<?xf64>
  %word = memref.load %count[] : memref<i64>
  %m = arith.index_cast %word : i64 to index
  // CHECK: call @graphc_planned_buffer(%[[MEMORY]], %c3,
  %b = memref.alloc(%m) : memref<?xf64>
  memref.copy %a, %b : memref<?xf64> to memref<?xf64>
  memref.copy %b, %y : memref<?xf64> to memref<?xf64>
  return
}

// -----

// A lifetime includes the uses of views and of what loops hand on.
// CHECK-LABEL: func.func @aliases
func.func @aliases(%x: memref<64xf64>, %y: memref<8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: call @graphc_workspace_0(%c1024)
  // CHECK: %[[A:.+]] = call @graphc_buffer
  %a = memref.alloc() : memref<64xf64>
  // CHECK: %[[B:.+]] = call @graphc_buffer
  %b = memref.alloc() : memref<64xf64>
  memref.copy %x, %a : memref<64xf64> to memref<64xf64>
  memref.copy %x, %b : memref<64xf64> to memref<64xf64>
  // CHECK: %[[ROWS:.+]]:2 = scf.for
  %rows:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<64xf64>, memref<64xf64>) {
    scf.yield %q, %p : memref<64xf64>, memref<64xf64>
  }
  %part = memref.subview %rows#0[0] [8] [1] : memref<64xf64> to memref<8xf64, strided<[1]>>
  // CHECK-NOT: graphc_end
  // CHECK: memref.copy
  // CHECK-DAG: call @graphc_end(%[[A]])
  // CHECK-DAG: call @graphc_end(%[[B]])
  memref.copy %part, %y : memref<8xf64, strided<[1]>> to memref<8xf64>
  return
}

// -----

// What is allocated in a loop, or returned, is left alone.
// CHECK-LABEL: func.func @left
// CHECK-NOT: call @graphc
func.func @left(%n: index) -> memref<?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f64
  // CHECK: memref.alloc
  %r = memref.alloc(%n) : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: memref.alloc
    %b = memref.alloc(%i) : memref<?xf64>
    memref.store %z, %b[%c0] : memref<?xf64>
    %v = memref.load %b[%c0] : memref<?xf64>
    memref.store %v, %r[%i] : memref<?xf64>
  }
  return %r : memref<?xf64>
}

// -----

// A region of a conditional takes a workspace of its own, so that the other one costs no memory.
// CHECK-LABEL: func.func @conditional
func.func @conditional(%x: memref<?xf64>, %y: memref<?xf64>, %p: i1) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  // CHECK-NOT: call
  // CHECK: scf.if
  scf.if %p {
    // CHECK: call @graphc_workspace_0
    // CHECK: call @graphc_end
    %a = memref.alloc(%n) : memref<?xf64>
    memref.copy %x, %a : memref<?xf64> to memref<?xf64>
    memref.copy %a, %y : memref<?xf64> to memref<?xf64>
  } else {
    // CHECK: } else {
    // CHECK-NOT: call
    memref.copy %x, %y : memref<?xf64> to memref<?xf64>
  }
  return
}
