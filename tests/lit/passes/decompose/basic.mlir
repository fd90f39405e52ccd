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
