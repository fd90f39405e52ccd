// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --pass-pipeline='builtin.module(graphc-join-buffer-elimination,graphc-fusion,graphc-convert-to-linalg,canonicalize,eliminate-empty-tensors,one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,graphc-matmul-to-blas,graphc-linalg-to-loops,canonicalize)' %s | filecheck %s

// The gradients by a weight matrix and a bias, flattened: both are computed in the result.
// CHECK: func.func @main
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: call @graphc_dgemm
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: return
func.func @main(%x: tensor<?x8xf64>, %d: tensor<?x4xf64>) -> tensor<36xf64> {
  %c32 = arith.constant 32 : index
  %w = "graphc.matmul"(%x, %d) {transpose_a = true, transpose_b = false} : (tensor<?x8xf64>, tensor<?x4xf64>) -> tensor<8x4xf64>
  %b = "graphc.reduce_sum"(%d) {axes = array<i64: 0>} : (tensor<?x4xf64>) -> tensor<4xf64>
  %flat = "graphc.reshape"(%w, %c32) : (tensor<8x4xf64>, index) -> tensor<32xf64>
  %0 = tensor.cast %flat : tensor<32xf64> to tensor<?xf64>
  %1 = tensor.cast %b : tensor<4xf64> to tensor<?xf64>
  %2 = "graphc.join"(%0, %1) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<36xf64>
  return %2 : tensor<36xf64>
}
