// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt %s | graphc-opt | filecheck %s

// CHECK-LABEL: @parts
// CHECK: "graphc.write_buffer"(%{{.*}}) {type = tensor<?xf64>} : (index) -> !graphc.buffer
// CHECK: %[[P:.*]]:2 = "graphc.write_split"(%{{.*}}, %{{.*}}, %{{.*}}) {axis = 0 : i64}
// CHECK: "graphc.write_view"(%[[P]]#0, %{{.*}}, %{{.*}}) {type = tensor<?x?xf64>}
// CHECK: "graphc.write"(%{{.*}}, %{{.*}}) : (tensor<?x?xf64>, !graphc.buffer) -> !graphc.token
// CHECK: "graphc.write_join"
func.func @parts(%x: tensor<?x?xf64>, %y: tensor<?xf64>, %n: index, %m: index, %k: index, %total: index) -> tensor<?xf64> {
  %0 = "graphc.write_buffer"(%total) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  %size = arith.muli %n, %m : index
  %1:2 = "graphc.write_split"(%0, %size, %k) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %2 = "graphc.write_view"(%1#0, %n, %m) {type = tensor<?x?xf64>} : (!graphc.buffer, index, index) -> !graphc.buffer
  %3 = "graphc.write"(%x, %2) : (tensor<?x?xf64>, !graphc.buffer) -> !graphc.token
  %4 = "graphc.write"(%y, %1#1) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  %5 = "graphc.write_join"(%0, %3, %4) : (!graphc.buffer, !graphc.token, !graphc.token) -> tensor<?xf64>
  return %5 : tensor<?xf64>
}

// CHECK-LABEL: @transposed
// CHECK: "graphc.write_view"(%{{.*}}) {order = array<i64: 1, 0>, type = tensor<2x3xf64>}
func.func @transposed(%x: tensor<2x3xf64>) -> tensor<3x2xf64> {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %0 = "graphc.write_buffer"(%c3, %c2) {type = tensor<3x2xf64>} : (index, index) -> !graphc.buffer
  %1 = "graphc.write_view"(%0) {order = array<i64: 1, 0>, type = tensor<2x3xf64>} : (!graphc.buffer) -> !graphc.buffer
  %2 = "graphc.write"(%x, %1) : (tensor<2x3xf64>, !graphc.buffer) -> !graphc.token
  %3 = "graphc.write_join"(%0, %2) : (!graphc.buffer, !graphc.token) -> tensor<3x2xf64>
  return %3 : tensor<3x2xf64>
}
