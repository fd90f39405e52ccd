// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-shapes %s | filecheck %s

// The result of x @ y has as many rows as x and as many columns as y.
// CHECK-LABEL: func.func @shapes(%arg0: tensor<?x?xf64>, %arg1: tensor<?x?xf64>) -> (index, index)
// CHECK-NOT: graphc.matmul
// CHECK-DAG: %[[M:.*]] = tensor.dim %arg0, %c0
// CHECK-DAG: %[[N:.*]] = tensor.dim %arg1, %c1
// CHECK: return %[[M]], %[[N]]
func.func @main(%x: tensor<?x?xf64>, %y: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}
