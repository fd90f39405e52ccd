// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-decompose %s --split-input-file | filecheck %s
// RUN: graphc-opt --graphc-decompose="device=true" %s --split-input-file | filecheck --check-prefix=DEVICE %s

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
// DEVICE-LABEL: @positions
// DEVICE: "graphc.argmin"(%arg0) {axis = 1 : i64}
func.func @positions(%x: tensor<?x?xf64>, %y: tensor<?x4xf64>) -> (tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) {
  %0 = "graphc.argmin"(%x) {axis = 1 : i64} : (tensor<?x?xf64>) -> tensor<?xi64>
  %1 = "graphc.argmax"(%x) {axis = 0 : i64} : (tensor<?x?xf64>) -> tensor<?xi64>
  %2 = "graphc.argmax"(%y) {axis = 1 : i64} : (tensor<?x4xf64>) -> tensor<?xi64>
  return %0, %1, %2 : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>
}

// -----

// Functions of both signs of a difference share its exponential; of one alone nothing is negated.
// CHECK-LABEL: @opposites
// CHECK: %[[D:.*]] = "graphc.sub"(%arg0, %arg1)
// CHECK: "graphc.softplus"(%[[D]])
// CHECK: %[[N:.*]] = "graphc.neg"(%[[D]])
// CHECK: "graphc.sigmoid"(%[[N]])
// CHECK: %[[E:.*]] = "graphc.sub"(%arg1, %arg2)
// CHECK: "graphc.sigmoid"(%[[E]])
// CHECK-NOT: graphc.neg
// CHECK: "graphc.exp"
func.func @opposites(%x: tensor<?x1xf64>, %y: tensor<1x?xf64>, %z: tensor<1x?xf64>)
    -> (tensor<?x?xf64>, tensor<?x?xf64>, tensor<1x?xf64>, tensor<1x?xf64>) {
  %0 = "graphc.sub"(%x, %y) : (tensor<?x1xf64>, tensor<1x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.softplus"(%0) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %2 = "graphc.sub"(%y, %x) : (tensor<1x?xf64>, tensor<?x1xf64>) -> tensor<?x?xf64>
  %3 = "graphc.sigmoid"(%2) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %4 = "graphc.sub"(%y, %z) : (tensor<1x?xf64>, tensor<1x?xf64>) -> tensor<1x?xf64>
  %5 = "graphc.sigmoid"(%4) : (tensor<1x?xf64>) -> tensor<1x?xf64>
  %6 = "graphc.sub"(%z, %y) : (tensor<1x?xf64>, tensor<1x?xf64>) -> tensor<1x?xf64>
  %7 = "graphc.exp"(%6) : (tensor<1x?xf64>) -> tensor<1x?xf64>
  return %1, %3, %5, %7 : tensor<?x?xf64>, tensor<?x?xf64>, tensor<1x?xf64>, tensor<1x?xf64>
}
