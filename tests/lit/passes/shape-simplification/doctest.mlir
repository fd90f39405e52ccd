// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-shape-simplification %s | filecheck %s

// zeros_like(exp(x)) needs the size of x, but not the exponential.
// CHECK-NOT: graphc.exp
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: "graphc.broadcast_to"(%{{.*}}, %[[N]])
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %c0 = arith.constant 0 : index
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %n = tensor.dim %0, %c0 : tensor<?xf64>
  %1 = "graphc.broadcast_to"(%zero, %n) : (tensor<f64>, index) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}
