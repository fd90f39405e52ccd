// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-rematerialise=budget=5000 %s | filecheck %s

// tanh(x) is read at the start and at the end; in between there is no memory for it. 256 elements are computed
// again, in the loop that multiplies by them.
// CHECK: flops = 256
// CHECK: graphc.tanh{{.*}}cluster = 0
// CHECK-COUNT-3: graphc.matmul
// CHECK: graphc.tanh{{.*}}cluster = 1
// CHECK: graphc.mul{{.*}}cluster = 1
func.func @main(%x: tensor<16x16xf64>, %w: tensor<16x16xf64>) -> tensor<16x16xf64> {
  %a = "graphc.tanh"(%x) : (tensor<16x16xf64>) -> tensor<16x16xf64>
  %b = "graphc.matmul"(%a, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  %c = "graphc.matmul"(%b, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  %d = "graphc.matmul"(%c, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  %e = "graphc.mul"(%d, %a) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
  return %e : tensor<16x16xf64>
}
