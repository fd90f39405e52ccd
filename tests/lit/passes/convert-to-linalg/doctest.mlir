// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-convert-to-linalg %s | filecheck %s

// x + 1: one loop over the elements, written into the caller's buffer.
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: tensor<?xf64>{{.*}}, %[[OUT:[a-z0-9]+]]: memref<?xf64>)
// CHECK: %[[R:[0-9]+]] = linalg.generic
// CHECK: arith.addf
// CHECK: bufferization.materialize_in_destination %[[R]] in restrict writable %[[OUT]]
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.add"(%x, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
