// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-join-buffer-elimination %s | filecheck %s

// Both operands are computed in their slice of the result; the first one before it is flattened.
// CHECK: func.func @main
// CHECK: %[[F:.*]] = "graphc.exp"(%arg0)
// CHECK: %[[G:.*]] = "graphc.neg"(%arg1)
// CHECK: %[[B:.*]] = "graphc.write_buffer"(%{{.*}}) {type = tensor<10xf64>}
// CHECK: %[[P:.*]]:2 = "graphc.write_split"(%[[B]], %{{.*}}, %{{.*}}) {axis = 0 : i64}
// CHECK: %[[V:.*]] = "graphc.write_view"(%[[P]]#0, %{{.*}}, %{{.*}}) {type = tensor<2x3xf64>}
// CHECK: %[[S:.*]] = "graphc.write"(%[[F]], %[[V]])
// CHECK: %[[T:.*]] = "graphc.write"(%[[G]], %[[P]]#1)
// CHECK: %[[R:.*]] = "graphc.write_join"(%[[B]], %[[S]], %[[T]])
// CHECK: return %[[R]]
func.func @main(%x: tensor<2x3xf64>, %y: tensor<4xf64>) -> tensor<10xf64> {
  %c6 = arith.constant 6 : index
  %f = "graphc.exp"(%x) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  %flat = "graphc.reshape"(%f, %c6) : (tensor<2x3xf64>, index) -> tensor<6xf64>
  %g = "graphc.neg"(%y) : (tensor<4xf64>) -> tensor<4xf64>
  %a = tensor.cast %flat : tensor<6xf64> to tensor<?xf64>
  %b = tensor.cast %g : tensor<4xf64> to tensor<?xf64>
  %0 = "graphc.join"(%a, %b) {axis = 0 : i64} : (tensor<?xf64>, tensor<?xf64>) -> tensor<10xf64>
  return %0 : tensor<10xf64>
}
