// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --split-input-file %s | filecheck %s

// A producer, its consumer and a reduction over the same elements share a loop.
// CHECK-LABEL: @sum_of_squares
// CHECK: graphc.sub{{.*}}cluster = 0
// CHECK: graphc.sqr{{.*}}cluster = 0
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
func.func @sum_of_squares(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<f64> {
  %0 = "graphc.sub"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.sqr"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %2 : tensor<f64>
}

// -----

// Two reductions over one input are one sweep.
// CHECK-LABEL: @siblings
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
// CHECK: graphc.reduce_max{{.*}}cluster = 0
func.func @siblings(%x: tensor<?xf64>) -> (tensor<f64>, tensor<f64>) {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %1 = "graphc.reduce_max"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %0, %1 : tensor<f64>, tensor<f64>
}

// -----

// A reduction's result is not read in its own loop; the expensive exp is computed once and stored.
// CHECK-LABEL: @normalise
// CHECK: graphc.exp{{.*}}cluster = 0
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
// CHECK: graphc.true_div{{.*}}cluster = 1
// CHECK-NOT: graphc.exp
func.func @normalise(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %3 = "graphc.true_div"(%0, %2) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// A cheap difference is computed again in the second loop instead of being stored by the first.
// CHECK-LABEL: @recompute
// CHECK: graphc.sub{{.*}}cluster = 0
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
// CHECK: graphc.sub{{.*}}cluster = 1
// CHECK: graphc.mul{{.*}}cluster = 1
func.func @recompute(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.sub"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %3 = "graphc.mul"(%2, %0) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// Reductions along different axes need different loops.
// CHECK-LABEL: @axes
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
// CHECK: graphc.reduce_sum{{.*}}cluster = 1
func.func @axes(%x: tensor<?x?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?x?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<?x?xf64>) -> tensor<?xf64>
  return %0, %1 : tensor<?xf64>, tensor<?xf64>
}

// -----

// The exp depends on the product with the reduction's result, so it cannot join the loop it reads x in.
// CHECK-LABEL: @no_cycle
// CHECK: graphc.reduce_sum{{.*}}cluster = 0
// CHECK: graphc.mul{{.*}}cluster = 1
// CHECK: graphc.add{{.*}}cluster = 1
func.func @no_cycle(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %2 = "graphc.mul"(%x, %1) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %3 = "graphc.add"(%2, %x) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// Regions of conditionals have clusters of their own.
// CHECK-LABEL: @conditional
// CHECK: graphc.exp{{.*}}cluster = 0
// CHECK: scf.if
// CHECK: graphc.sqr{{.*}}cluster = 1
// CHECK: graphc.tanh{{.*}}cluster = 1
// CHECK: } else {
// CHECK: graphc.sin{{.*}}cluster = 2
func.func @conditional(%x: tensor<?xf64>, %c: tensor<i1>) -> tensor<?xf64> {
  %p = tensor.extract %c[] : tensor<i1>
  %e = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %r = scf.if %p -> tensor<?xf64> {
    %0 = "graphc.sqr"(%e) : (tensor<?xf64>) -> tensor<?xf64>
    %1 = "graphc.tanh"(%0) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %1 : tensor<?xf64>
  } else {
    %0 = "graphc.sin"(%e) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %0 : tensor<?xf64>
  }
  return %r : tensor<?xf64>
}
