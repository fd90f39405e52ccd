// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-kernel-pointers %s | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: memref.copy
// CHECK: llvm.inttoptr
func.func private @kernel(!llvm.ptr)

func.func @main(%x: memref<4x6xf64>) {
  %y = memref.subview %x[0, 0] [4, 3] [1, 1] : memref<4x6xf64> to memref<4x3xf64, strided<[6, 1]>>
  %p = "graphc.address"(%y) {access = "read"} : (memref<4x3xf64, strided<[6, 1]>>) -> !llvm.ptr
  func.call @kernel(%p) : (!llvm.ptr) -> ()
  return
}
