// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-kernel-pointers %s | filecheck %s

func.func private @kernel(!llvm.ptr)

// A whole buffer is contiguous by its type.
// CHECK-LABEL: func.func @whole
func.func @whole(%x: memref<?x?xf64>) {
  // CHECK-NOT: memref.copy
  // CHECK: memref.extract_aligned_pointer_as_index %arg0
  // CHECK: call @kernel
  %y = memref.cast %x : memref<?x?xf64> to memref<?x?xf64, strided<[?, ?], offset: ?>>
  %p = "graphc.address"(%x) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  func.call @kernel(%p) : (!llvm.ptr) -> ()
  return
}

// A row of a stack of unknown sizes, and what a loop makes of it: contiguous, although no type says so.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: memref<?x?x?xf64>, %n: index) {
  // CHECK-NOT: memref.copy
  // CHECK: return
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %k = memref.dim %x, %c1 : memref<?x?x?xf64>
  %m = memref.dim %x, %c2 : memref<?x?x?xf64>
  %spare = memref.alloc(%k, %m) : memref<1x?x?xf64>
  %first = memref.subview %spare[0, 0, 0] [1, %k, %m] [1, 1, 1] : memref<1x?x?xf64> to memref<?x?xf64, strided<[?, 1]>>
  %start = memref.cast %first : memref<?x?xf64, strided<[?, 1]>> to memref<?x?xf64, strided<[?, 1], offset: ?>>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%h = %start) -> (memref<?x?xf64, strided<[?, 1], offset: ?>>) {
    %row = memref.subview %x[%i, 0, 0] [1, %k, %m] [1, 1, 1] : memref<?x?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
    %p = "graphc.address"(%h) {access = "read"} : (memref<?x?xf64, strided<[?, 1], offset: ?>>) -> !llvm.ptr
    %q = "graphc.address"(%row) {access = "write"} : (memref<?x?xf64, strided<[?, 1], offset: ?>>) -> !llvm.ptr
    func.call @kernel(%p) : (!llvm.ptr) -> ()
    func.call @kernel(%q) : (!llvm.ptr) -> ()
    scf.yield %row : memref<?x?xf64, strided<[?, 1], offset: ?>>
  }
  %r = "graphc.address"(%last) {access = "read"} : (memref<?x?xf64, strided<[?, 1], offset: ?>>) -> !llvm.ptr
  func.call @kernel(%r) : (!llvm.ptr) -> ()
  return
}

// Strides that are the products of the sizes after them.
// CHECK-LABEL: func.func @computed
func.func @computed(%x: memref<?xf64>, %k: index, %m: index, %n: index) {
  // CHECK-NOT: memref.copy
  // CHECK: return
  %mn = arith.muli %n, %m : index
  %y = memref.reinterpret_cast %x to offset: [%k], sizes: [%k, %m, %n], strides: [%mn, %n, 1] : memref<?xf64> to memref<?x?x?xf64, strided<[?, ?, 1], offset: ?>>
  %p = "graphc.address"(%y) {access = "write"} : (memref<?x?x?xf64, strided<[?, ?, 1], offset: ?>>) -> !llvm.ptr
  func.call @kernel(%p) : (!llvm.ptr) -> ()
  return
}

// Columns lie apart, and so may what one of the branches of a conditional gives: a copy is read.
// CHECK-LABEL: func.func @columns
func.func @columns(%x: memref<4x?xf64>, %k: index, %c: i1, %other: memref<4x?xf64, strided<[?, 1], offset: ?>>) {
  // CHECK: memref.alloc
  // CHECK: memref.copy
  // CHECK: memref.alloc
  // CHECK: memref.copy
  // CHECK: return
  %y = memref.subview %x[0, 0] [4, %k] [1, 1] : memref<4x?xf64> to memref<4x?xf64, strided<[?, 1]>>
  %p = "graphc.address"(%y) {access = "read"} : (memref<4x?xf64, strided<[?, 1]>>) -> !llvm.ptr
  func.call @kernel(%p) : (!llvm.ptr) -> ()
  %w = memref.cast %x : memref<4x?xf64> to memref<4x?xf64, strided<[?, 1], offset: ?>>
  %s = arith.select %c, %w, %other : memref<4x?xf64, strided<[?, 1], offset: ?>>
  %q = "graphc.address"(%s) {access = "read"} : (memref<4x?xf64, strided<[?, 1], offset: ?>>) -> !llvm.ptr
  func.call @kernel(%q) : (!llvm.ptr) -> ()
  return
}
