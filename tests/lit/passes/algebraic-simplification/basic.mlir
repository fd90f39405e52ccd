// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-algebraic-simplification %s --split-input-file | filecheck %s

// CHECK-LABEL: @neutral
// CHECK-NEXT: return %arg0
func.func @neutral(%x: tensor<?xf64>) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<1xf64>
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %0 = "graphc.add"(%x, %zero) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %1 = "graphc.mul"(%one, %0) : (tensor<1xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.true_div"(%1, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// 0 * x of floats stays, because x may be NaN or infinite.
// CHECK-LABEL: @float_zero
// CHECK: graphc.mul
func.func @float_zero(%x: tensor<?xf64>) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<1xf64>
  %0 = "graphc.mul"(%x, %zero) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @integer_zero
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK: "graphc.broadcast_to"(%{{.*}}, %[[N]])
// CHECK-NOT: graphc.mul
func.func @integer_zero(%x: tensor<?xi32>) -> tensor<?xi32> {
  %zero = arith.constant dense<0> : tensor<1xi32>
  %0 = "graphc.mul"(%x, %zero) : (tensor<?xi32>, tensor<1xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// -----

// Adding an array of zeros checks sizes, so it stays.
// CHECK-LABEL: @shape_check
// CHECK: graphc.add
func.func @shape_check(%x: tensor<?xf64>, %n: index) -> tensor<?xf64> {
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %n) : (tensor<f64>, index) -> tensor<?xf64>
  %0 = "graphc.add"(%x, %zeros) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @powers
// CHECK: %[[S:.*]] = "graphc.sqr"(%arg0)
// CHECK: "graphc.sqrt"(%arg0)
// CHECK: %[[R:.*]] = "graphc.switch"
// CHECK: return %[[S]], %[[R]]
func.func @powers(%x: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %two = arith.constant dense<2.0> : tensor<1xf64>
  %half = arith.constant dense<0.5> : tensor<1xf64>
  %0 = "graphc.pow"(%x, %two) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %1 = "graphc.pow"(%x, %half) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %0, %1 : tensor<?xf64>, tensor<?xf64>
}

// -----

// A sum is multiplied afterwards, if the factor cannot hide an overflow.
// CHECK-LABEL: @scaled_sums
// CHECK: %[[T:.*]] = "graphc.reduce_sum"(%arg0)
// CHECK: "graphc.mul"(%[[T]]
// CHECK: %[[M:.*]] = "graphc.mul"(%arg0
// CHECK: "graphc.reduce_sum"(%[[M]])
func.func @scaled_sums(%x: tensor<?xf64>) -> (tensor<f64>, tensor<f64>) {
  %large = arith.constant dense<3.0> : tensor<1xf64>
  %small = arith.constant dense<0.3> : tensor<1xf64>
  %0 = "graphc.mul"(%x, %large) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  %2 = "graphc.mul"(%x, %small) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %3 = "graphc.reduce_sum"(%2) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %1, %3 : tensor<f64>, tensor<f64>
}

// -----

// float32 holds every int16, but not every int32.
// CHECK-LABEL: @casts
// CHECK: %[[A:.*]] = "graphc.cast"(%arg0) : (tensor<?xi16>) -> tensor<?xf64>
// CHECK: "graphc.cast"(%arg1) : (tensor<?xi32>) -> tensor<?xf32>
func.func @casts(%x: tensor<?xi16>, %y: tensor<?xi32>) -> (tensor<?xf64>, tensor<?xf64>) {
  %0 = "graphc.cast"(%x) : (tensor<?xi16>) -> tensor<?xf32>
  %1 = "graphc.cast"(%0) : (tensor<?xf32>) -> tensor<?xf64>
  %2 = "graphc.cast"(%y) : (tensor<?xi32>) -> tensor<?xf32>
  %3 = "graphc.cast"(%2) : (tensor<?xf32>) -> tensor<?xf64>
  return %1, %3 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Of a complex number, the square of the length needs no root; an infinite part counts, even beside a NaN.
// CHECK-LABEL: @square_of_length
// CHECK-DAG: %[[A:.*]] = "graphc.real"(%arg0)
// CHECK-DAG: %[[B:.*]] = "graphc.imag"(%arg0)
// CHECK-DAG: %[[I:.*]] = "graphc.isinf"(%arg0)
// CHECK: %[[S:.*]] = "graphc.add"
// CHECK: "graphc.switch"(%[[I]], %{{.*}}, %[[S]])
// CHECK-NOT: "graphc.abs"
func.func @square_of_length(%x: tensor<?xcomplex<f64>>) -> tensor<?xf64> {
  %0 = "graphc.abs"(%x) : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %1 = "graphc.sqr"(%0) : (tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// A function of one number, in whatever rank it is read.
// CHECK-LABEL: func.func @of_a_number(
// CHECK-SAME:    %[[X:.*]]: tensor<f64>)
// CHECK:         %[[E:.*]] = "graphc.exp"(%[[X]]) : (tensor<f64>) -> tensor<f64>
// CHECK:         %[[S:.*]] = "graphc.sqr"(%[[E]]) : (tensor<f64>) -> tensor<f64>
// CHECK:         %[[D:.*]] = "graphc.dimshuffle"(%[[S]]) {order = array<i64: -1, -1>} : (tensor<f64>) -> tensor<1x1xf64>
// CHECK:         return %[[D]]
func.func @of_a_number(%x: tensor<f64>) -> tensor<1x1xf64> {
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: -1, -1>} : (tensor<f64>) -> tensor<1x1xf64>
  %1 = "graphc.exp"(%0) : (tensor<1x1xf64>) -> tensor<1x1xf64>
  %2 = "graphc.sqr"(%1) : (tensor<1x1xf64>) -> tensor<1x1xf64>
  return %2 : tensor<1x1xf64>
}

// -----

// Negations move to the end and cancel.
// CHECK-LABEL: @signs
// CHECK: %[[Q:.*]] = "graphc.true_div"(%arg0, %arg1)
// CHECK: %[[P:.*]] = "graphc.mul"(%[[Q]], %arg1)
// CHECK: return %[[P]]
func.func @signs(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.true_div"(%0, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.mul"(%1, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %3 = "graphc.neg"(%2) : (tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// One number in the place of many equal ones; ones that are multiplied by disappear.
// CHECK-LABEL: @repeated
// CHECK-DAG: %[[M:.*]] = arith.constant dense<-2.000000e+02> : tensor<f64>
// CHECK: return %arg0, %[[M]]
func.func @repeated(%x: tensor<200xf64>) -> (tensor<200xf64>, tensor<f64>) {
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %ones = "graphc.second"(%x, %one) : (tensor<200xf64>, tensor<1xf64>) -> tensor<200xf64>
  %0 = "graphc.mul"(%ones, %x) : (tensor<200xf64>, tensor<200xf64>) -> tensor<200xf64>
  %1 = "graphc.neg"(%ones) : (tensor<200xf64>) -> tensor<200xf64>
  %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0>} : (tensor<200xf64>) -> tensor<f64>
  return %0, %2 : tensor<200xf64>, tensor<f64>
}

// -----

// CHECK-LABEL: @repeated_operand
// CHECK: %[[C:.*]] = arith.constant dense<3.000000e+00> : tensor<1xf64>
// CHECK: "graphc.maximum"(%arg0, %[[C]])
func.func @repeated_operand(%x: tensor<200xf64>, %n: index) -> tensor<200xf64> {
  %c200 = arith.constant 200 : index
  %three = arith.constant dense<3.0> : tensor<f64>
  %all = "graphc.broadcast_to"(%three, %c200) : (tensor<f64>, index) -> tensor<200xf64>
  %0 = "graphc.maximum"(%x, %all) : (tensor<200xf64>, tensor<200xf64>) -> tensor<200xf64>
  return %0 : tensor<200xf64>
}

// -----

// CHECK-LABEL: @unit_reshape
// CHECK: "graphc.dimshuffle"(%arg0) {order = array<i64: -1, 1>}
// CHECK-NOT: graphc.reshape
func.func @unit_reshape(%x: tensor<1x5xf64>) -> tensor<1x5xf64> {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %0 = "graphc.reshape"(%x, %c1, %c5) : (tensor<1x5xf64>, index, index) -> tensor<1x5xf64>
  return %0 : tensor<1x5xf64>
}

// -----

// Larger whole exponents, too, are squares and products.
// CHECK-LABEL: @whole_powers
// CHECK-DAG: %[[S:.*]] = "graphc.sqr"(%arg0)
// CHECK-DAG: %[[T:.*]] = "graphc.mul"(%[[S]], %arg0)
// CHECK-DAG: %[[SIX:.*]] = "graphc.sqr"(%[[T]])
// CHECK-DAG: %[[R:.*]] = "graphc.reciprocal"(%
// CHECK-DAG: %[[Q:.*]] = "graphc.sqr"(%[[R]])
// CHECK-DAG: %[[FIFTH:.*]] = "graphc.true_div"(%[[Q]], %arg0)
// CHECK-DAG: %[[EIGHT:.*]] = "graphc.pow"
// CHECK: return %[[SIX]], %[[FIFTH]], %[[EIGHT]]
func.func @whole_powers(%x: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
  %six = arith.constant dense<6.0> : tensor<1xf64>
  %fifth = arith.constant dense<-5.0> : tensor<1xf64>
  %eight = arith.constant dense<8.0> : tensor<1xf64>
  %0 = "graphc.pow"(%x, %six) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %1 = "graphc.pow"(%x, %fifth) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  %2 = "graphc.pow"(%x, %eight) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %0, %1, %2 : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
}

// -----

// CHECK-LABEL: @negative_powers
// CHECK: %[[R:.*]] = "graphc.reciprocal"(%arg0)
// CHECK: %[[S:.*]] = "graphc.sqr"(%[[R]])
// CHECK: "graphc.true_div"(%[[S]], %arg0)
func.func @negative_powers(%x: tensor<?xf64>) -> tensor<?xf64> {
  %three = arith.constant dense<-3.0> : tensor<1xf64>
  %0 = "graphc.pow"(%x, %three) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// What is put into zeros and then added is added in its place.
// CHECK-LABEL: @sum_with_updated_zeros
// CHECK-NOT: "graphc.add"
// CHECK: %[[A:.*]] = "graphc.update_slice"(%arg0, %arg1, {{.*}}) {accumulate = true}
// CHECK: %[[B:.*]] = "graphc.put"(%[[A]], %arg2, %arg3) {accumulate = true, axis = 0 : i64}
// CHECK: return %[[B]]
func.func @sum_with_updated_zeros(%x: tensor<9xf64>, %y: tensor<1xf64>, %z: tensor<3xf64>, %i: tensor<3xi64>, %n: index) -> tensor<9xf64> {
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %c9) : (tensor<f64>, index) -> tensor<9xf64>
  %0 = "graphc.update_slice"(%zeros, %y, %n, %c1, %c1) {accumulate = false} : (tensor<9xf64>, tensor<1xf64>, index, index, index) -> tensor<9xf64>
  %1 = "graphc.put"(%zeros, %z, %i) {axis = 0 : i64, accumulate = true} : (tensor<9xf64>, tensor<3xf64>, tensor<3xi64>) -> tensor<9xf64>
  %2 = "graphc.add"(%0, %x) : (tensor<9xf64>, tensor<9xf64>) -> tensor<9xf64>
  %3 = "graphc.add"(%2, %1) : (tensor<9xf64>, tensor<9xf64>) -> tensor<9xf64>
  return %3 : tensor<9xf64>
}

// -----

// An index that occurs twice is set, not added, so the second value counts alone; sizes may differ; and what
// counts for more than it is put into. One element is added in its place, also where the zeros are read elsewhere.
// CHECK-LABEL: @sums_that_stay
// CHECK-COUNT-3: "graphc.add"
// CHECK-NOT: "graphc.add"
func.func @sums_that_stay(%x: tensor<?xf64>, %y: tensor<1xf64>, %z: tensor<3xf64>, %i: tensor<3xi64>, %n: index) -> (tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %m = tensor.dim %x, %c0 : tensor<?xf64>
  %zeros = "graphc.broadcast_to"(%zero, %m) : (tensor<f64>, index) -> tensor<?xf64>
  %others = "graphc.broadcast_to"(%zero, %n) : (tensor<f64>, index) -> tensor<?xf64>
  %0 = "graphc.put"(%zeros, %z, %i) {axis = 0 : i64, accumulate = false} : (tensor<?xf64>, tensor<3xf64>, tensor<3xi64>) -> tensor<?xf64>
  %1 = "graphc.add"(%x, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.update_slice"(%others, %y, %c0, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %3 = "graphc.add"(%x, %2) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %4 = "graphc.update_slice"(%zeros, %y, %n, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %5 = "graphc.add"(%x, %4) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %one = arith.constant dense<0.0> : tensor<1xf64>
  %6 = "graphc.update_slice"(%one, %y, %c0, %c1, %c1) {accumulate = true} : (tensor<1xf64>, tensor<1xf64>, index, index, index) -> tensor<1xf64>
  %7 = "graphc.add"(%x, %6) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %1, %3, %4, %5, %7 : tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>, tensor<?xf64>
}

// -----

// CHECK-LABEL: @choice_of_an_update
// CHECK: %[[OLD:.*]] = "graphc.slice"(%arg0
// CHECK: %[[NEW:.*]] = "graphc.add"(%[[OLD]], %arg1)
// CHECK: %[[PART:.*]] = "graphc.switch"(%arg2, %[[NEW]], %[[OLD]])
// CHECK: "graphc.update_slice"(%arg0, %[[PART]], {{.*}}) {accumulate = false}
func.func @choice_of_an_update(%x: tensor<?xf64>, %y: tensor<1xf64>, %c: tensor<1xi1>, %n: index) -> tensor<?xf64> {
  %c1 = arith.constant 1 : index
  %0 = "graphc.update_slice"(%x, %y, %n, %c1, %c1) {accumulate = true} : (tensor<?xf64>, tensor<1xf64>, index, index, index) -> tensor<?xf64>
  %1 = "graphc.switch"(%c, %0, %x) : (tensor<1xi1>, tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// What is linear, or 0 of 0, is computed of what was put into zeros: a step of a gradient changes a row. Arrays
// of few elements stay as they are.
// CHECK-LABEL: @step_of_a_row
// CHECK-NOT: broadcast_to
// CHECK: %[[G:.*]] = "graphc.mul"(%arg1, %{{.*}}) : (tensor<1x4xf64>, tensor<1x1xf64>)
// CHECK: %[[N:.*]] = "graphc.update_slice"(%arg0, %{{.*}}) {accumulate = true}
// CHECK: return %[[N]]
func.func @step_of_a_row(%x: tensor<9x4xf64>, %g: tensor<1x4xf64>, %rate: tensor<f64>, %i: index) -> tensor<9x4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %low = arith.constant dense<-1.0> : tensor<1x1xf64>
  %zeros = "graphc.broadcast_to"(%zero, %c9, %c4) : (tensor<f64>, index, index) -> tensor<9x4xf64>
  %0 = "graphc.update_slice"(%zeros, %g, %i, %c0, %c1, %c4, %c1, %c1) {accumulate = true} : (tensor<9x4xf64>, tensor<1x4xf64>, index, index, index, index, index, index) -> tensor<9x4xf64>
  %1 = "graphc.dimshuffle"(%rate) {order = array<i64: -1, -1>} : (tensor<f64>) -> tensor<1x1xf64>
  %2 = "graphc.mul"(%0, %1) : (tensor<9x4xf64>, tensor<1x1xf64>) -> tensor<9x4xf64>
  %3 = "graphc.maximum"(%2, %low) : (tensor<9x4xf64>, tensor<1x1xf64>) -> tensor<9x4xf64>
  %4 = "graphc.sub"(%x, %3) : (tensor<9x4xf64>, tensor<9x4xf64>) -> tensor<9x4xf64>
  return %4 : tensor<9x4xf64>
}

// -----

// CHECK-LABEL: @step_of_a_small_row
// CHECK: "graphc.mul"{{.*}} : (tensor<3x2xf64>, tensor<1x1xf64>)
func.func @step_of_a_small_row(%g: tensor<1x2xf64>, %rate: tensor<f64>, %i: index) -> tensor<3x2xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %c3, %c2) : (tensor<f64>, index, index) -> tensor<3x2xf64>
  %0 = "graphc.update_slice"(%zeros, %g, %i, %c0, %c1, %c2, %c1, %c1) {accumulate = true} : (tensor<3x2xf64>, tensor<1x2xf64>, index, index, index, index, index, index) -> tensor<3x2xf64>
  %1 = "graphc.dimshuffle"(%rate) {order = array<i64: -1, -1>} : (tensor<f64>) -> tensor<1x1xf64>
  %2 = "graphc.mul"(%0, %1) : (tensor<3x2xf64>, tensor<1x1xf64>) -> tensor<3x2xf64>
  return %2 : tensor<3x2xf64>
}

// -----

// A sum of squares of a row that was put into zeros; 1 of 0 is not 0, so that the exponential stays.
// CHECK-LABEL: @norm_of_a_row
// CHECK: %[[S:.*]] = "graphc.sqr"(%arg0) : (tensor<1x4xf64>)
// CHECK: "graphc.reduce_sum"(%[[S]]) {axes = array<i64: 0, 1>} : (tensor<1x4xf64>)
// CHECK: "graphc.exp"{{.*}} : (tensor<9x4xf64>)
func.func @norm_of_a_row(%g: tensor<1x4xf64>, %i: index) -> (tensor<f64>, tensor<9x4xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %c9, %c4) : (tensor<f64>, index, index) -> tensor<9x4xf64>
  %0 = "graphc.update_slice"(%zeros, %g, %i, %c0, %c1, %c4, %c1, %c1) {accumulate = true} : (tensor<9x4xf64>, tensor<1x4xf64>, index, index, index, index, index, index) -> tensor<9x4xf64>
  %1 = "graphc.sqr"(%0) : (tensor<9x4xf64>) -> tensor<9x4xf64>
  %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0, 1>} : (tensor<9x4xf64>) -> tensor<f64>
  %3 = "graphc.exp"(%0) : (tensor<9x4xf64>) -> tensor<9x4xf64>
  return %2, %3 : tensor<f64>, tensor<9x4xf64>
}

// -----

// A logarithm of a difference is made of that of its size, which the slope has too: cse makes them one.
// CHECK-LABEL: @log_of_difference
// CHECK: %[[HIGH:.*]] = "graphc.maximum"(%arg0, %arg1)
// CHECK: %[[LOW:.*]] = "graphc.minimum"(%arg0, %arg1)
// CHECK: "graphc.sub"(%[[LOW]], %[[HIGH]])
// CHECK: %[[LOG:.*]] = "graphc.log1mexp"
// CHECK: %[[BELOW:.*]] = "graphc.lt"(%arg0, %arg1)
// CHECK: "graphc.switch"(%[[BELOW]], {{.*}}, %[[LOG]])
func.func @log_of_difference(%x: tensor<8xf64>, %y: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %zero = arith.constant dense<0.0> : tensor<1xf64>
  %0 = "graphc.eq"(%x, %y) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xi1>
  %1 = "graphc.sub"(%y, %x) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %2 = "graphc.switch"(%0, %zero, %1) : (tensor<8xi1>, tensor<1xf64>, tensor<8xf64>) -> tensor<8xf64>
  %3 = "graphc.log1mexp"(%2) : (tensor<8xf64>) -> tensor<8xf64>
  %4 = "graphc.maximum"(%x, %y) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %5 = "graphc.minimum"(%x, %y) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %6 = "graphc.eq"(%4, %5) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xi1>
  %7 = "graphc.sub"(%5, %4) : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %8 = "graphc.switch"(%6, %zero, %7) : (tensor<8xi1>, tensor<1xf64>, tensor<8xf64>) -> tensor<8xf64>
  %9 = "graphc.log1mexp"(%8) : (tensor<8xf64>) -> tensor<8xf64>
  return %3, %9 : tensor<8xf64>, tensor<8xf64>
}

// -----

// What was put into zeros by indices along two axes, seen as one; not where another operand is repeated.
// CHECK-LABEL: @step_of_cells
// CHECK: %[[F:.*]] = "graphc.reshape"(%arg0
// CHECK: %[[P:.*]] = "graphc.put"(%[[F]],
// CHECK: "graphc.reshape"(%[[P]]
// CHECK: "graphc.mul"{{.*}} (tensor<9x4xf64>, tensor<1x4xf64>)
func.func @step_of_cells(%x: tensor<9x4xf64>, %g: tensor<3xf64>, %i: tensor<3xi64>, %s: tensor<1x4xf64>) -> (tensor<9x4xf64>, tensor<9x4xf64>) {
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %c36 = arith.constant 36 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %rate = arith.constant dense<0.1> : tensor<1x1xf64>
  %zeros = "graphc.broadcast_to"(%zero, %c36) : (tensor<f64>, index) -> tensor<36xf64>
  %0 = "graphc.put"(%zeros, %g, %i) {accumulate = true, axis = 0 : i64} : (tensor<36xf64>, tensor<3xf64>, tensor<3xi64>) -> tensor<36xf64>
  %1 = "graphc.reshape"(%0, %c9, %c4) : (tensor<36xf64>, index, index) -> tensor<9x4xf64>
  %2 = "graphc.mul"(%1, %rate) : (tensor<9x4xf64>, tensor<1x1xf64>) -> tensor<9x4xf64>
  %3 = "graphc.sub"(%x, %2) : (tensor<9x4xf64>, tensor<9x4xf64>) -> tensor<9x4xf64>
  %4 = "graphc.put"(%zeros, %g, %i) {accumulate = true, axis = 0 : i64} : (tensor<36xf64>, tensor<3xf64>, tensor<3xi64>) -> tensor<36xf64>
  %5 = "graphc.reshape"(%4, %c9, %c4) : (tensor<36xf64>, index, index) -> tensor<9x4xf64>
  %6 = "graphc.mul"(%5, %s) : (tensor<9x4xf64>, tensor<1x4xf64>) -> tensor<9x4xf64>
  return %3, %6 : tensor<9x4xf64>, tensor<9x4xf64>
}

// -----

// A matrix with a diagonal is no such: it is looked for where derivatives of Cholesky factors are.
// CHECK-LABEL: @minus_a_diagonal
// CHECK: "graphc.sub"{{.*}} : (tensor<6x6xf64>, tensor<6x6xf64>)
func.func @minus_a_diagonal(%x: tensor<6x6xf64>, %d: tensor<6xf64>) -> tensor<6x6xf64> {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c36 = arith.constant 36 : index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %zeros = "graphc.broadcast_to"(%zero, %c36) : (tensor<f64>, index) -> tensor<36xf64>
  %0 = "graphc.update_slice"(%zeros, %d, %c0, %c6, %c7) {accumulate = false} : (tensor<36xf64>, tensor<6xf64>, index, index, index) -> tensor<36xf64>
  %1 = "graphc.reshape"(%0, %c6, %c6) : (tensor<36xf64>, index, index) -> tensor<6x6xf64>
  %2 = "graphc.sub"(%x, %1) : (tensor<6x6xf64>, tensor<6x6xf64>) -> tensor<6x6xf64>
  return %2 : tensor<6x6xf64>
}
