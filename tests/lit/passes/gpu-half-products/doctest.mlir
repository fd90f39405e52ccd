// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-half-products --canonicalize %s | filecheck %s

// CHECK: func.func @main(%[[A:.*]]: tensor<?x?xf16>, %[[B:.*]]: tensor<?x?xf16>)
// CHECK-NEXT: %[[P:.*]] = "graphc.matmul"(%[[A]], %[[B]]) {transpose_a = false, transpose_b = false} : (tensor<?x?xf16>, tensor<?x?xf16>) -> tensor<?x?xf32>
// CHECK-NEXT: "graphc.cast"(%[[P]])
func.func @main(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %x = "graphc.cast"(%a) : (tensor<?x?xf16>) -> tensor<?x?xf32>
  %y = "graphc.cast"(%b) : (tensor<?x?xf16>) -> tensor<?x?xf32>
  %p = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = "graphc.cast"(%p) : (tensor<?x?xf32>) -> tensor<?x?xf16>
  return %r : tensor<?x?xf16>
}
