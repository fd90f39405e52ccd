// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --finalize-memref-to-llvm --convert-func-to-llvm --reconcile-unrealized-casts --graphc-arena-allocation %s | filecheck %s

// A buffer of a kernel belongs to the call's context.
// CHECK: llvm.call @graphc_alloc(%arg0
// CHECK-NOT: llvm.call @malloc
func.func @main(%context: !llvm.ptr, %n: index) {
  %0 = memref.alloc(%n) : memref<?xf64>
  %c0 = llvm.mlir.constant(0 : index) : i64
  return
}
