// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-insert-checks --split-input-file %s | filecheck %s

// After the check that sizes agree, they are one value: nothing is left of the broadcast.
// CHECK-LABEL: @one_size
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: graphc.check
// CHECK-NOT: "graphc.broadcast_to"
// CHECK: "graphc.update_slice"(%arg0, %arg1, %{{.*}}, %{{.*}}, %[[N]],
func.func @one_size(%x: tensor<?x3xf64>, %y: tensor<?x3xf64>) -> tensor<?x3xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf64>
  %0 = "graphc.broadcast_to"(%y, %n, %c3) : (tensor<?x3xf64>, index, index) -> tensor<?x3xf64>
  %1 = "graphc.update_slice"(%x, %0, %c0, %c0, %n, %c3, %c1, %c1) {accumulate = true} : (tensor<?x3xf64>, tensor<?x3xf64>, index, index, index, index, index, index) -> tensor<?x3xf64>
  return %1 : tensor<?x3xf64>
}

// -----

// A loop that may have no iteration leaves the size unknown outside of its body, where it is 4.
// CHECK-LABEL: @in_iterations
// CHECK: %[[C4:.*]] = arith.constant 4 : index
// CHECK: graphc.check
// CHECK: graphc.scan
// CHECK: "graphc.slice"(%arg0, %{{.*}}, %{{.*}}, %{{.*}}, %[[C4]],
// CHECK: graphc.scan_end
// CHECK: %[[SIZE:.*]] = tensor.dim %arg0
// CHECK: return %{{.*}}, %[[SIZE]]
func.func @in_iterations(%e: tensor<?x?xf64>, %n: index) -> (tensor<1x4xf64>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf64>
  %0 = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %1 = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    %size = tensor.dim %e, %c1 : tensor<?x?xf64>
    %2 = "graphc.slice"(%e, %c0, %c0, %c1, %size, %c1, %c1) : (tensor<?x?xf64>, index, index, index, index, index, index) -> tensor<1x?xf64>
    %3 = "graphc.dimshuffle"(%2) {order = array<i64: 1>} : (tensor<1x?xf64>) -> tensor<?xf64>
    %4 = "graphc.add"(%1, %3) : (tensor<4xf64>, tensor<?xf64>) -> tensor<4xf64>
    "graphc.scan_carry"(%zeros, %4) {keep = "last", rows = 1 : i64, state = "h", taps = array<i64: -1>, writes = array<i64: 0>} : (tensor<1x4xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "scan", reverse = false} : (index) -> !graphc.loop
  %5 = "graphc.scan_trace"(%0) {state = "h"} : (!graphc.loop) -> tensor<1x4xf64>
  %6 = tensor.dim %e, %c1 : tensor<?x?xf64>
  return %5, %6 : tensor<1x4xf64>, index
}
