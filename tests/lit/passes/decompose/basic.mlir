// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-decompose %s --split-input-file | filecheck %s

// CHECK-LABEL: @log_softmax
// CHECK: %[[M:.*]] = "graphc.reduce_max"(%arg0) {allow_empty = true, axes = array<i64: 0>}
// CHECK: %[[MB:.*]] = "graphc.dimshuffle"(%[[M]]) {order = array<i64: -1, 0>}
// CHECK: %[[C:.*]] = "graphc.sub"(%arg0, %[[MB]])
// CHECK: %[[E:.*]] = "graphc.exp"(%[[C]])
// CHECK: %[[S:.*]] = "graphc.reduce_sum"(%[[E]])
// CHECK: %[[SB:.*]] = "graphc.dimshuffle"(%[[S]])
// CHECK: %[[L:.*]] = "graphc.log"(%[[SB]])
// CHECK: "graphc.sub"(%[[C]], %[[L]])
func.func @log_softmax(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.log_softmax"(%x) {axes = array<i64: 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}

// -----

// float16 is computed in float32.
// CHECK-LABEL: @half
// CHECK: "graphc.cast"(%arg0) : (tensor<?xf16>) -> tensor<?xf32>
// CHECK: "graphc.reciprocal"
// CHECK: "graphc.cast"{{.*}} -> tensor<?xf16>
func.func @half(%x: tensor<?xf16>) -> tensor<?xf16> {
  %0 = "graphc.softmax"(%x) {axes = array<i64: 0>} : (tensor<?xf16>) -> tensor<?xf16>
  return %0 : tensor<?xf16>
}

// -----

// Long rows go to a kernel; other axes, short rows and complex numbers stay.
// CHECK-LABEL: @positions
// CHECK: "graphc.arg_extreme"(%arg0) {smallest = 1 : i64}
// CHECK: "graphc.argmax"(%arg0) {axis = 0 : i64}
// CHECK: "graphc.argmax"(%arg1)
func.func @positions(%x: tensor<?x?xf64>, %y: tensor<?x4xf64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) {
  %0 = "graphc.argmin"(%x) {axis = 1 : i64} : (tensor<?x?xf64>) -> tensor<?xi64>
  %1 = "graphc.argmax"(%x) {axis = 0 : i64} : (tensor<?x?xf64>) -> tensor<?xi64>
  %2 = "graphc.argmax"(%y) {axis = 1 : i64} : (tensor<?x4xf64>) -> tensor<?xi64>
  return %0, %1, %2 : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}
