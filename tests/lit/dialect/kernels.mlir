// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @kernels
func.func @kernels(%a: tensor<?x3x3xf64>, %b: tensor<?x3x?xf64>, %x: tensor<?xf64>, %mask: tensor<?xi1>, %k: index)
    -> (tensor<?x3x?xf64>, tensor<?xf64>) {
  // CHECK: "graphc.cholesky"(%{{.*}}) {lower = 1 : i64} : (tensor<?x3x3xf64>) -> tensor<?x3x3xf64>
  %0 = "graphc.cholesky"(%a) {lower = 1 : i64} : (tensor<?x3x3xf64>) -> tensor<?x3x3xf64>
  // CHECK: "graphc.eigh"(%{{.*}}) {lower = 1 : i64} : (tensor<?x3x3xf64>) -> (tensor<?x3xf64>, tensor<?x3x3xf64>)
  %1:2 = "graphc.eigh"(%0) {lower = 1 : i64} : (tensor<?x3x3xf64>) -> (tensor<?x3xf64>, tensor<?x3x3xf64>)
  // CHECK: "graphc.solve"
  %2 = "graphc.solve"(%1#1, %b) : (tensor<?x3x3xf64>, tensor<?x3x?xf64>) -> tensor<?x3x?xf64>
  // The size of a result that no operand has is an operand.
  // CHECK: "graphc.compress"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?xf64>, tensor<?xi1>, index) -> tensor<?xf64>
  %3 = "graphc.compress"(%x, %mask, %k) : (tensor<?xf64>, tensor<?xi1>, index) -> tensor<?xf64>
  return %2, %3 : tensor<?x3x?xf64>, tensor<?xf64>
}
