// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-matmul-to-blas --verify-diagnostics %s

func.func @early(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  // expected-error @below {{'graphc.matmul' is not legal after the buffer pass graphc-matmul-to-blas}}
  %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}
