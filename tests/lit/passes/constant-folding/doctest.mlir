// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-constant-folding %s | filecheck %s

// The square root of two is computed once, by the compiler.
// CHECK: arith.constant dense<1.41421{{.*}}> : tensor<1xf64>
// CHECK-NOT: graphc.sqrt
// CHECK: graphc.mul
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %two = arith.constant dense<2.0> : tensor<1xf64>
  %0 = "graphc.sqrt"(%two) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.mul"(%x, %0) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}
