// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-kernel-pointers --split-input-file --verify-diagnostics %s

func.func private @kernel(!llvm.ptr)

func.func @apart(%x: memref<4x6xf64>) {
  %y = memref.subview %x[0, 0] [4, 3] [1, 1] : memref<4x6xf64> to memref<4x3xf64, strided<[6, 1]>>
  // expected-error @below {{writes contiguous memory, but memref<4x3xf64, strided<[6, 1]>> may not be}}
  %p = "graphc.address"(%y) {access = "write"} : (memref<4x3xf64, strided<[6, 1]>>) -> !llvm.ptr
  func.call @kernel(%p) : (!llvm.ptr) -> ()
  return
}

// -----

// What upstream makes of a slice of columns that is asked for as a contiguous buffer.
func.func @promise(%x: memref<?x?xf64>, %m: index, %n: index) -> memref<?x?xf64> {
  %y = memref.subview %x[0, 0] [%m, %n] [1, 1] : memref<?x?xf64> to memref<?x?xf64, strided<[?, 1]>>
  // expected-error @below {{memref<?x?xf64> is contiguous, but memref<?x?xf64, strided<[?, 1]>> may not be}}
  %z = memref.cast %y : memref<?x?xf64, strided<[?, 1]>> to memref<?x?xf64>
  return %z : memref<?x?xf64>
}

// -----

func.func @early(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  // expected-error @below {{'graphc.add' is not legal after the buffer pass graphc-kernel-pointers}}
  %0 = "graphc.add"(%x, %x) : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}

// -----

func.func @access(%x: memref<?xf64>) {
  // expected-error @below {{access must be one of read, write, but is both}}
  %p = "graphc.address"(%x) {access = "both"} : (memref<?xf64>) -> !llvm.ptr
  return
}
