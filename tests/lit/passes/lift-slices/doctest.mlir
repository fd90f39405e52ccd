// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-lift-slices %s | filecheck %s

// One row is multiplied, not all of them.
// CHECK: func.func @main
// CHECK: %[[ROW:.*]] = "graphc.slice"(%arg0, {{.*}} -> tensor<1x8xf64>
// CHECK-NEXT: %[[PRODUCT:.*]] = "graphc.matmul"(%[[ROW]], %arg1)
// CHECK-NEXT: "graphc.tanh"(%[[PRODUCT]])
func.func @main(%h: tensor<300x8xf64>, %w: tensor<8x5xf64>) -> tensor<1x5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c299 = arith.constant 299 : index
  %0 = "graphc.matmul"(%h, %w) {transpose_a = false, transpose_b = false} : (tensor<300x8xf64>, tensor<8x5xf64>) -> tensor<300x5xf64>
  %1 = "graphc.tanh"(%0) : (tensor<300x5xf64>) -> tensor<300x5xf64>
  %2 = "graphc.slice"(%1, %c299, %c0, %c1, %c5, %c1, %c1) : (tensor<300x5xf64>, index, index, index, index, index, index) -> tensor<1x5xf64>
  return %2 : tensor<1x5xf64>
}
