// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-linear-systems %s | filecheck %s

// The system is solved; nothing is inverted.
// CHECK: func.func @main
// CHECK-NEXT: "graphc.solve"(%arg0, %arg1) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64}
// CHECK-NEXT: return
func.func @main(%a: tensor<?x?xf64>, %b: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.inv"(%a) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.matmul"(%0, %b) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}
