// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-convert-to-linalg=device=true --split-input-file %s | filecheck %s

// Bits of which the probability is not 0 are counted; each finds its word by the number of those before.
// CHECK-LABEL: @main
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<1x3xf64>)
// CHECK: arith.cmpf ogt
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape
// CHECK: call @"graphc_kernel.running.i64-i64.kind-0-reverse-0"
// CHECK: %[[UNTIL:.*]] = bufferization.to_tensor
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%{{.*}} : tensor<1x3xf64>)
// CHECK: tensor.extract %[[UNTIL]]
// CHECK: arith.mului_extended
// The state after them, for which no bits are nothing to look up.
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<13xi64>)
// CHECK: scf.if
// CHECK: tensor.extract %[[UNTIL]]
func.func @main(%state: tensor<13xui64>, %p: tensor<1x3xf64>, %n: index) -> (tensor<?x3xi64>, tensor<13xui64>) {
  %c3 = arith.constant 3 : index
  %x, %next = "graphc.random"(%state, %p, %n, %c3) {distribution = "bernoulli", cores = array<i64: 0>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 2>} : (tensor<13xui64>, tensor<1x3xf64>, index, index) -> (tensor<?x3xi64>, tensor<13xui64>)
  return %x, %next : tensor<?x3xi64>, tensor<13xui64>
}

// -----

// What a draw at each word takes; from there, where those who come to a block leave it, and large blocks of
// blocks; the first words of blocks that are reached; flags of the words at which draws begin, and their positions.
// CHECK-LABEL: @poisson
// CHECK-COUNT-5: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<?xi64>)
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<?xi8>)
// CHECK: call @"graphc_kernel.flatnonzero.u8-i64."
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<1xf64>) outs(%{{.*}} : tensor<?xi64>)
// CHECK: arith.fptosi
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} outs(%{{.*}} : tensor<13xi64>)
func.func @poisson(%state: tensor<13xui64>, %rate: tensor<1xf64>, %n: index) -> (tensor<?xi64>, tensor<13xui64>) {
  %x, %next = "graphc.random"(%state, %rate, %n) {distribution = "poisson", cores = array<i64: 0>, support = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (tensor<13xui64>, tensor<1xf64>, index) -> (tensor<?xi64>, tensor<13xui64>)
  return %x, %next : tensor<?xi64>, tensor<13xui64>
}
