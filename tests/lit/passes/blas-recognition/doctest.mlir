// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-blas-recognition %s | filecheck %s

// x.T @ x: BLAS reads the transpose in place.
// CHECK: func.func @main
// CHECK-NEXT: "graphc.matmul"(%arg0, %arg0) {transpose_a = true, transpose_b = false}
// CHECK-NEXT: return
func.func @main(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.matmul"(%0, %x) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}
