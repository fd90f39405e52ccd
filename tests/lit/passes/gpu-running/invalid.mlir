// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-running --verify-diagnostics --split-input-file %s

// Kernels are made of buffers: bufferization comes first.
func.func @early(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.exp' is not legal after the buffer pass graphc-gpu-running}}
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// Two arrays are what a linear recurrence takes, not a sum (kind 0).
func.func private @recurrence(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) attributes {graphc.helper = {kind = "kernel", name = "recurrence", types = ["f32", "f32", "f32", "f32"], keywords = ["keep_initial", "kind", "reverse"], values = array<i64: 1, 0, 0>}}
func.func @across(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %first: memref<?x?xf32>, %y: memref<?x?xf32>, %n: index) {
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %2 = "graphc.address"(%first) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %3 = "graphc.address"(%y) {access = "write"} : (memref<?x?xf32>) -> !llvm.ptr
  %4 = arith.index_cast %n : index to i64
  // expected-error @below {{'recurrence' has no kind 0 of 2 arrays}}
  call @recurrence(%0, %1, %2, %3, %4) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  return
}

// -----

func.func private @recurrence(!llvm.ptr, i64) attributes {graphc.helper = {kind = "kernel", name = "recurrence", types = ["ui8", "ui8", "ui8"], keywords = ["keep_initial", "kind", "reverse"], values = array<i64: 0, 0, 0>}}
func.func @main(%y: memref<?xui8>, %n: i64) {
  %0 = "graphc.address"(%y) {access = "write"} : (memref<?xui8>) -> !llvm.ptr
  // expected-error @below {{'recurrence' is declared with a type 'ui8', which kernels do not have}}
  call @recurrence(%0, %n) : (!llvm.ptr, i64) -> ()
  return
}

// -----

func.func @access(%x: memref<?xf32>) {
  // expected-error @below {{access must be one of read, write, but is None}}
  %0 = "graphc.address"(%x) {access = array<i128: 0>} : (memref<?xf32>) -> !llvm.ptr
  return
}
