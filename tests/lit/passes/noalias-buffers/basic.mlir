// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-noalias-buffers --split-input-file %s | filecheck %s

// Only what is listed is marked, and the list is gone.
// CHECK-LABEL: llvm.func @main(
// CHECK-SAME: %arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr {llvm.noalias}, %arg3: i64) -> i64 {
llvm.func @main(%ctx: !llvm.ptr, %x: !llvm.ptr, %data: !llvm.ptr, %offset: i64) -> i64 attributes {graphc.buffers = array<i32: 2>} {
  llvm.return %offset : i64
}

// -----

// CHECK-NOT: noalias
// CHECK-LABEL: llvm.func @other
llvm.func @other(%x: !llvm.ptr, %y: !llvm.ptr, %n: i64) -> i64 {
  llvm.return %n : i64
}
