// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-noalias-buffers %s | filecheck %s

// CHECK: llvm.func @shapes(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr {llvm.noalias})
llvm.func @shapes(%ctx: !llvm.ptr, %x: !llvm.ptr, %data: !llvm.ptr) attributes {graphc.buffers = array<i32: 2>} {
  llvm.return
}
