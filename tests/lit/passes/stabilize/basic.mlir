// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-stabilize %s --split-input-file | filecheck %s

// CHECK-LABEL: @log1p
// CHECK-NEXT: "graphc.log1p"(%arg0)
// CHECK-NEXT: return
func.func @log1p(%x: tensor<?xf64>) -> tensor<?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.add"(%one, %x) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.log"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @softplus
// CHECK-NEXT: "graphc.softplus"(%arg0)
// CHECK-NEXT: return
func.func @softplus(%x: tensor<?xf64>) -> tensor<?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.add"(%0, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %2 = "graphc.log"(%1) : (tensor<?xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @log_one_minus_sigmoid
// CHECK-NEXT: %[[S:.*]] = "graphc.softplus"(%arg0)
// CHECK-NEXT: "graphc.neg"(%[[S]])
// CHECK-NEXT: return
func.func @log_one_minus_sigmoid(%x: tensor<?xf64>) -> tensor<?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.sigmoid"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.sub"(%one, %0) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.log"(%1) : (tensor<?xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @log_softmax
// CHECK-NEXT: "graphc.log_softmax"(%arg0) {axes = array<i64: 1>}
// CHECK-NEXT: return
func.func @log_softmax(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.softmax"(%x) {axes = array<i64: 1>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.log"(%0) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %1 : tensor<?x?xf64>
}

// -----

// A sum that is shifted already stays.
// CHECK-LABEL: @shifted
// CHECK-COUNT-1: graphc.reduce_max
// CHECK-NOT: graphc.reduce_max
func.func @shifted(%x: tensor<?xf64>) -> tensor<f64> {
  %0 = "graphc.reduce_max"(%x) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %2 = "graphc.sub"(%x, %1) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %3 = "graphc.exp"(%2) : (tensor<?xf64>) -> tensor<?xf64>
  %4 = "graphc.reduce_sum"(%3) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %5 = "graphc.log"(%4) : (tensor<f64>) -> tensor<f64>
  return %5 : tensor<f64>
}

// -----

// Complex numbers are left alone.
// CHECK-LABEL: @complex
// CHECK: graphc.log"
func.func @complex(%x: tensor<?xcomplex<f64>>) -> tensor<?xcomplex<f64>> {
  %0 = "graphc.exp"(%x) : (tensor<?xcomplex<f64>>) -> tensor<?xcomplex<f64>>
  %1 = "graphc.log"(%0) : (tensor<?xcomplex<f64>>) -> tensor<?xcomplex<f64>>
  return %1 : tensor<?xcomplex<f64>>
}

// -----

// CHECK-LABEL: @weighted_softmax
// CHECK-NEXT: %[[P:.*]] = "graphc.softmax"(%arg0) {axes = array<i64: 0>, guarded = true}
// CHECK-NEXT: "graphc.mul"(%[[P]], %arg1)
// CHECK-NEXT: return
func.func @weighted_softmax(%x: tensor<?xf64>, %w: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %3 = "graphc.true_div"(%w, %2) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %4 = "graphc.mul"(%0, %3) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %4 : tensor<?xf64>
}

// -----

// A weight that is not positive has no logarithm.
// CHECK-LABEL: @mixtures
// CHECK: graphc.logaddexp
// CHECK-NOT: graphc.logaddexp
func.func @mixtures(%x: tensor<?xf64>, %y: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %half = arith.constant dense<0.5> : tensor<1xf64>
  %minus = arith.constant dense<-0.5> : tensor<1xf64>
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.mul"(%half, %0) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.mul"(%minus, %1) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %4 = "graphc.add"(%2, %1) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %5 = "graphc.log"(%4) : (tensor<?xf64>) -> tensor<?xf64>
  %6 = "graphc.add"(%3, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %7 = "graphc.log"(%6) : (tensor<?xf64>) -> tensor<?xf64>
  return %5, %7 : tensor<?xf64>, tensor<?xf64>
}

// -----

// The derivative of log(sum(exp(x))) along columns by the chain rule, with what spreads it in between.
// CHECK-LABEL: @spread
// CHECK: %[[P:.*]] = "graphc.softmax"(%arg0) {axes = array<i64: 0>, guarded = true}
// CHECK-NEXT: %[[G:.*]] = "graphc.dimshuffle"(%arg1) {order = array<i64: -1, 0>}
// CHECK-NEXT: %[[W:.*]] = "graphc.second"({{.*}}, %[[G]])
// CHECK-NEXT: %[[R:.*]] = "graphc.mul"(%[[W]], %[[P]])
// CHECK-NEXT: return %[[R]]
func.func @spread(%x: tensor<?x3xf64>, %g: tensor<3xf64>) -> tensor<?x3xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?x3xf64>) -> tensor<3xf64>
  %2 = "graphc.true_div"(%g, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %3 = "graphc.dimshuffle"(%2) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
  %4 = "graphc.second"(%0, %3) : (tensor<?x3xf64>, tensor<1x3xf64>) -> tensor<?x3xf64>
  %5 = "graphc.mul"(%4, %0) : (tensor<?x3xf64>, tensor<?x3xf64>) -> tensor<?x3xf64>
  return %5 : tensor<?x3xf64>
}

// -----

// Other factors and signs in between, and the sum in a product of divisors.
// CHECK-LABEL: @factors
// CHECK-NEXT: %[[P:.*]] = "graphc.softmax"(%arg0) {axes = array<i64: 0>, guarded = true}
// CHECK-NEXT: %[[G:.*]] = "graphc.mul"(%arg1, %[[P]])
// CHECK-NEXT: %[[N:.*]] = "graphc.neg"(%[[G]])
// CHECK-NEXT: "graphc.true_div"(%[[N]], %arg2)
// CHECK-NEXT: return
func.func @factors(%x: tensor<4xf64>, %g: tensor<4xf64>, %c: tensor<1xf64>) -> tensor<4xf64> {
  %0 = "graphc.exp"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<4xf64>) -> tensor<f64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %3 = "graphc.mul"(%g, %0) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %4 = "graphc.neg"(%3) : (tensor<4xf64>) -> tensor<4xf64>
  %5 = "graphc.mul"(%2, %c) : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>
  %6 = "graphc.true_div"(%4, %5) : (tensor<4xf64>, tensor<1xf64>) -> tensor<4xf64>
  return %6 : tensor<4xf64>
}

// -----

// CHECK-LABEL: @reciprocal
// CHECK: %[[P:.*]] = "graphc.softmax"(%arg0) {axes = array<i64: 1>, guarded = true}
// CHECK: "graphc.mul"({{.*}}, %[[P]])
func.func @reciprocal(%x: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %0 = "graphc.exp"(%x) : (tensor<3x4xf64>) -> tensor<3x4xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<3x4xf64>) -> tensor<3xf64>
  %2 = "graphc.reciprocal"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %3 = "graphc.dimshuffle"(%2) {order = array<i64: 0, -1>} : (tensor<3xf64>) -> tensor<3x1xf64>
  %4 = "graphc.mul"(%3, %0) : (tensor<3x1xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %4 : tensor<3x4xf64>
}

// -----

// Sums of rows do not divide columns: no softmax.
// CHECK-LABEL: @other_axis
// CHECK-NOT: softmax
func.func @other_axis(%x: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %0 = "graphc.exp"(%x) : (tensor<3x3xf64>) -> tensor<3x3xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<3x3xf64>) -> tensor<3xf64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
  %3 = "graphc.true_div"(%0, %2) : (tensor<3x3xf64>, tensor<1x3xf64>) -> tensor<3x3xf64>
  return %3 : tensor<3x3xf64>
}

// -----

// CHECK-LABEL: @two_terms
// CHECK-NEXT: %[[D:.*]] = "graphc.sub"(%arg0, %arg1)
// CHECK-NEXT: %[[P:.*]] = "graphc.sigmoid"(%[[D]])
// CHECK-NEXT: "graphc.mul"(%arg2, %[[P]])
// CHECK-NEXT: return
func.func @two_terms(%x: tensor<?xf64>, %y: tensor<?xf64>, %g: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.add"(%0, %1) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.true_div"(%g, %2) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %4 = "graphc.mul"(%3, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %4 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @one_and_another
// CHECK-NEXT: %[[P:.*]] = "graphc.sigmoid"(%arg0)
// CHECK-NEXT: "graphc.mul"(%arg1, %[[P]])
// CHECK-NEXT: return
func.func @one_and_another(%x: tensor<?xf64>, %g: tensor<?xf64>) -> tensor<?xf64> {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.add"(%0, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %2 = "graphc.true_div"(%g, %1) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.mul"(%2, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @three_terms
// CHECK: %[[L:.*]] = "graphc.logaddexp"
// CHECK-NEXT: %[[D:.*]] = "graphc.sub"(%arg0, %[[L]])
// CHECK-NEXT: "graphc.sigmoid"(%[[D]])
// CHECK-NEXT: return
func.func @three_terms(%x: tensor<?xf64>, %y: tensor<?xf64>, %z: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.exp"(%z) : (tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.add"(%1, %2) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %4 = "graphc.add"(%3, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %5 = "graphc.true_div"(%0, %4) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %5 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @of_a_sigmoid
// CHECK-NEXT: %[[P:.*]] = "graphc.sigmoid"(%arg0)
// CHECK-NEXT: return %[[P]]
func.func @of_a_sigmoid(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.sigmoid"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.mul"(%1, %2) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// The maximum of a log-sum-exp is guarded: its gradient is no softmax, which would shift again.
// CHECK-LABEL: @shifted
// CHECK-COUNT-1: "graphc.exp"
// CHECK-NOT: "graphc.softmax"
// CHECK-NOT: "graphc.exp"
// CHECK: return
func.func @shifted(%x: tensor<?x3xf64>, %g: tensor<?x1xf64>) -> (tensor<?x1xf64>, tensor<?x3xf64>) {
  %zero = arith.constant dense<0.0> : tensor<1x1xf64>
  %0 = "graphc.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?xf64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
  %2 = "graphc.isinf"(%1) : (tensor<?x1xf64>) -> tensor<?x1xi1>
  %3 = "graphc.switch"(%2, %zero, %1) : (tensor<?x1xi1>, tensor<1x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %4 = "graphc.sub"(%x, %3) : (tensor<?x3xf64>, tensor<?x1xf64>) -> tensor<?x3xf64>
  %5 = "graphc.exp"(%4) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %6 = "graphc.reduce_sum"(%5) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?xf64>
  %7 = "graphc.dimshuffle"(%6) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
  %8 = "graphc.log"(%7) : (tensor<?x1xf64>) -> tensor<?x1xf64>
  %9 = "graphc.add"(%8, %3) : (tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %10 = "graphc.true_div"(%g, %7) : (tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
  %11 = "graphc.mul"(%10, %5) : (tensor<?x1xf64>, tensor<?x3xf64>) -> tensor<?x3xf64>
  return %9, %11 : tensor<?x1xf64>, tensor<?x3xf64>
}

// -----

// Less the maximum of all rows, small rows underflow: their softmax is shifted again.
// CHECK-LABEL: @shifted_as_a_whole
// CHECK: "graphc.softmax"(%{{.*}}) {axes = array<i64: 1>, guarded = true}
func.func @shifted_as_a_whole(%x: tensor<?x3xf64>) -> tensor<?x3xf64> {
  %0 = "graphc.reduce_max"(%x) {axes = array<i64: 0, 1>} : (tensor<?x3xf64>) -> tensor<f64>
  %1 = "graphc.dimshuffle"(%0) {order = array<i64: -1, -1>} : (tensor<f64>) -> tensor<1x1xf64>
  %2 = "graphc.sub"(%x, %1) : (tensor<?x3xf64>, tensor<1x1xf64>) -> tensor<?x3xf64>
  %3 = "graphc.exp"(%2) : (tensor<?x3xf64>) -> tensor<?x3xf64>
  %4 = "graphc.reduce_sum"(%3) {axes = array<i64: 1>} : (tensor<?x3xf64>) -> tensor<?xf64>
  %5 = "graphc.dimshuffle"(%4) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
  %6 = "graphc.true_div"(%3, %5) : (tensor<?x3xf64>, tensor<?x1xf64>) -> tensor<?x3xf64>
  return %6 : tensor<?x3xf64>
}

// -----

// A divisor underflows by other numbers than the factor does: one exponential of both would have more elements.
// CHECK-LABEL: @apart
// CHECK-NOT: "graphc.softplus"
// CHECK: "graphc.true_div"
// CHECK-NOT: "graphc.exp"
// CHECK: return
func.func @apart(%x: tensor<6xf64>, %r: tensor<5xf64>) -> tensor<5xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %z = "graphc.slice"(%x, %c0, %c5, %c1) : (tensor<6xf64>, index, index, index) -> tensor<5xf64>
  %s = "graphc.slice"(%x, %c5, %c1, %c1) : (tensor<6xf64>, index, index, index) -> tensor<1xf64>
  %0 = "graphc.exp"(%s) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.true_div"(%r, %0) : (tensor<5xf64>, tensor<1xf64>) -> tensor<5xf64>
  %2 = "graphc.sigmoid"(%z) : (tensor<5xf64>) -> tensor<5xf64>
  %3 = "graphc.mul"(%1, %2) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %3 : tensor<5xf64>
}

// -----

// As above, of the same numbers.
// CHECK-LABEL: @together
// CHECK: "graphc.softplus"
// CHECK: "graphc.exp"
// CHECK: return
func.func @together(%x: tensor<6xf64>, %r: tensor<5xf64>) -> tensor<5xf64> {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %z = "graphc.slice"(%x, %c0, %c5, %c1) : (tensor<6xf64>, index, index, index) -> tensor<5xf64>
  %s = "graphc.slice"(%x, %c4, %c1, %c1) : (tensor<6xf64>, index, index, index) -> tensor<1xf64>
  %0 = "graphc.exp"(%s) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.true_div"(%r, %0) : (tensor<5xf64>, tensor<1xf64>) -> tensor<5xf64>
  %2 = "graphc.sigmoid"(%z) : (tensor<5xf64>) -> tensor<5xf64>
  %3 = "graphc.mul"(%1, %2) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %3 : tensor<5xf64>
}

// -----

// What is put at indices is divided by one input and multiplied by a number of another one.
// CHECK-LABEL: @placed_apart
// CHECK: "graphc.put"
// CHECK-NOT: "graphc.take"
// CHECK: return
func.func @placed_apart(%a: tensor<1xf64>, %e: tensor<1xf64>, %r: tensor<9xf64>, %i: tensor<9xi64>) -> tensor<4xf64> {
  %zeros = arith.constant dense<0.0> : tensor<4xf64>
  %0 = "graphc.exp"(%e) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.true_div"(%r, %0) : (tensor<9xf64>, tensor<1xf64>) -> tensor<9xf64>
  %2 = "graphc.put"(%zeros, %1, %i) {accumulate = true, axis = 0 : i64} : (tensor<4xf64>, tensor<9xf64>, tensor<9xi64>) -> tensor<4xf64>
  %3 = "graphc.exp"(%a) : (tensor<1xf64>) -> tensor<1xf64>
  %4 = "graphc.mul"(%2, %3) : (tensor<4xf64>, tensor<1xf64>) -> tensor<4xf64>
  return %4 : tensor<4xf64>
}

// -----

// All terms of the sum have one exponent, which is taken out of it: no maximum is looked for.
// CHECK-LABEL: @same_exponent
// CHECK-NOT: "graphc.reduce_max"(%{{.*}}) {{.*}} : (tensor<9xf64>)
// CHECK: "graphc.reduce_sum"
// CHECK: return
func.func @same_exponent(%a: tensor<1xf64>, %r: tensor<9xf64>) -> tensor<f64> {
  %0 = "graphc.exp"(%a) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.mul"(%r, %0) : (tensor<9xf64>, tensor<1xf64>) -> tensor<9xf64>
  %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<9xf64>) -> tensor<f64>
  %3 = "graphc.dimshuffle"(%0) {order = array<i64>} : (tensor<1xf64>) -> tensor<f64>
  %4 = "graphc.mul"(%3, %3) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %5 = "graphc.true_div"(%2, %4) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %5 : tensor<f64>
}

// -----

// What is at most 1 is no large factor: a product of such needs no logarithm.
// CHECK-LABEL: @bounded
// CHECK-NOT: "graphc.softplus"
// CHECK: return
func.func @bounded(%x: tensor<3xf64>, %y: tensor<9x3xf64>) -> tensor<3xf64> {
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
  %1 = "graphc.sub"(%y, %0) : (tensor<9x3xf64>, tensor<1x3xf64>) -> tensor<9x3xf64>
  %2 = "graphc.sigmoid"(%1) : (tensor<9x3xf64>) -> tensor<9x3xf64>
  %3 = "graphc.mul"(%y, %2) : (tensor<9x3xf64>, tensor<9x3xf64>) -> tensor<9x3xf64>
  %4 = "graphc.reduce_sum"(%3) {axes = array<i64: 0>} : (tensor<9x3xf64>) -> tensor<3xf64>
  %5 = "graphc.sigmoid"(%x) : (tensor<3xf64>) -> tensor<3xf64>
  %6 = "graphc.mul"(%4, %5) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %6 : tensor<3xf64>
}

// -----

// Rows of one factor and columns of the other are shifted by their maxima, as far as these are large.
// CHECK-LABEL: @matrix_product
// CHECK: "graphc.reduce_max"(%arg0) {allow_empty = true, axes = array<i64: 1>}
// CHECK: "graphc.reduce_max"(%arg1) {allow_empty = true, axes = array<i64: 0>}
// CHECK: %[[P:.*]] = "graphc.matmul"
// CHECK: "graphc.log"(%[[P]])
func.func @matrix_product(%a: tensor<?x4xf64>, %b: tensor<4x?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.exp"(%a) : (tensor<?x4xf64>) -> tensor<?x4xf64>
  %1 = "graphc.exp"(%b) : (tensor<4x?xf64>) -> tensor<4x?xf64>
  %2 = "graphc.matmul"(%0, %1) {transpose_a = false, transpose_b = false} : (tensor<?x4xf64>, tensor<4x?xf64>) -> tensor<?x?xf64>
  %3 = "graphc.log"(%2) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  return %3 : tensor<?x?xf64>
}

// -----

// An exponential is its absolute value: the share is found.
// CHECK-LABEL: @abs_of_exp
// CHECK-NEXT: "graphc.sigmoid"(%arg0)
func.func @abs_of_exp(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.abs"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %2 = "graphc.add"(%one, %1) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.true_div"(%0, %2) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// What is at most 1 and a number that does not underflow stay as they are: the sum has a logarithm.
// CHECK-LABEL: @tail_and_number
// CHECK-NEXT: arith.constant
// CHECK-NEXT: "graphc.sigmoid"(%arg0)
// CHECK-NEXT: "graphc.add"
// CHECK-NEXT: "graphc.log"
func.func @tail_and_number(%x: tensor<?xf64>) -> tensor<?xf64> {
  %small = arith.constant dense<1.0e-9> : tensor<1xf64>
  %0 = "graphc.sigmoid"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.add"(%0, %small) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %2 = "graphc.log"(%1) : (tensor<?xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// An exponential may overflow.
// CHECK-LABEL: @exponential_and_number
// CHECK: "graphc.logaddexp"
func.func @exponential_and_number(%x: tensor<?xf64>) -> tensor<?xf64> {
  %small = arith.constant dense<1.0e-9> : tensor<1xf64>
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.add"(%0, %small) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %2 = "graphc.log"(%1) : (tensor<?xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}
