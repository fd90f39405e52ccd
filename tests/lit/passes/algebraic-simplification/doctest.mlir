// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-algebraic-simplification %s | filecheck %s

// -(x * 2) * 3 needs one multiplication; two transpositions are none.
// CHECK: %[[C:.*]] = arith.constant dense<-6.000000e+00> : tensor<1x1xf64>
// CHECK-NEXT: %[[R:.*]] = "graphc.mul"(%arg0, %[[C]])
// CHECK-NEXT: return %[[R]]
func.func @main(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %two = arith.constant dense<2.0> : tensor<1x1xf64>
  %three = arith.constant dense<3.0> : tensor<1x1xf64>
  %0 = "graphc.mul"(%x, %two) : (tensor<?x?xf64>, tensor<1x1xf64>) -> tensor<?x?xf64>
  %1 = "graphc.neg"(%0) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = "graphc.mul"(%1, %three) : (tensor<?x?xf64>, tensor<1x1xf64>) -> tensor<?x?xf64>
  %3 = "graphc.dimshuffle"(%2) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %4 = "graphc.dimshuffle"(%3) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %4 : tensor<?x?xf64>
}
