// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-insert-checks %s | filecheck %s

// Adding two vectors needs equal lengths.
// CHECK: %[[Y:.*]] = tensor.dim %arg1
// CHECK: %[[X:.*]] = tensor.dim %arg0
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[Y]], %[[X]]
// CHECK: "graphc.check"(%[[SAME]], %[[Y]], %[[X]]) {error = "ValueError", message = "add: operand sizes in dimension 0 must agree
// CHECK: "graphc.add"
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.add"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
