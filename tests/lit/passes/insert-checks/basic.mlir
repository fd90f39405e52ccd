// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-insert-checks %s --split-input-file | filecheck %s

// The second operation relies on the same condition as the first: one check.
// CHECK-LABEL: @once
// CHECK-COUNT-1: graphc.check
// CHECK-NOT: graphc.check
func.func @once(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.add"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.mul"(%y, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @certain
// CHECK-NOT: graphc.check
func.func @certain(%x: tensor<?xf64>, %one: tensor<1xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.mul"(%x, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %2 = "graphc.add"(%1, %one) : (tensor<?xf64>, tensor<1xf64>) -> tensor<?xf64>
  return %2 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @reshape
// CHECK: graphc.check{{.*}}negative dimensions
// CHECK: arith.muli
// CHECK: graphc.check{{.*}}ValueError{{.*}}cannot reshape an array of {given} elements
// CHECK: graphc.reshape
func.func @reshape(%x: tensor<?x?xf64>, %n: index) -> tensor<?xf64> {
  %0 = "graphc.reshape"(%x, %n) : (tensor<?x?xf64>, index) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// CHECK-LABEL: @take
// CHECK: graphc.reduce_min
// CHECK: graphc.reduce_max
// CHECK: graphc.check{{.*}}IndexError{{.*}}out of bounds for axis 0
// CHECK: graphc.check{{.*}}IndexError
// CHECK: graphc.take
func.func @take(%x: tensor<?xf64>, %i: tensor<4xi64>) -> tensor<4xf64> {
  %0 = "graphc.take"(%x, %i) {axis = 0 : i64} : (tensor<?xf64>, tensor<4xi64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// CHECK-LABEL: @specify_shape
// CHECK: graphc.check{{.*}}dimension 0 has size {given}, expected {expected}
func.func @specify_shape(%x: tensor<?xf64>) -> tensor<3xf64> {
  %c3 = arith.constant 3 : index
  %0 = "graphc.specify_shape"(%x, %c3) : (tensor<?xf64>, index) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// -----

// What a check in one region has shown is not known in the other, nor after both.
// CHECK-LABEL: @conditional
// CHECK: scf.if
// CHECK: graphc.check
// CHECK-NEXT: graphc.add
// CHECK: } else {
// CHECK: graphc.check
// CHECK-NEXT: graphc.mul
// CHECK: }
// CHECK: graphc.check
// CHECK-NEXT: graphc.sub
func.func @conditional(%x: tensor<?xf64>, %y: tensor<?xf64>, %p: i1) -> (tensor<?xf64>, tensor<?xf64>) {
  %r = scf.if %p -> tensor<?xf64> {
    %0 = "graphc.add"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    scf.yield %0 : tensor<?xf64>
  } else {
    %0 = "graphc.mul"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
    scf.yield %0 : tensor<?xf64>
  }
  %1 = "graphc.sub"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %r, %1 : tensor<?xf64>, tensor<?xf64>
}

// -----

// Integers have powers with exponents that are known, or found, not to be negative.
// CHECK-LABEL: @powers
// CHECK: "graphc.reduce_min"(%arg1)
// CHECK: graphc.check
// CHECK-SAME: no power of the negative integer
// CHECK-NEXT: graphc.pow
// CHECK-NEXT: graphc.pow
// CHECK-NEXT: return
func.func @powers(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
  %two = arith.constant dense<2> : tensor<1xi32>
  %0 = "graphc.pow"(%x, %y) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = "graphc.pow"(%x, %two) : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xi32>, tensor<4xi32>
}

// What the graph did not know to have size 1 does not broadcast, although the size is found to be 1.
// CHECK-LABEL: @found_to_be_one
// CHECK: graphc.slice
// CHECK: "graphc.check"
// CHECK-SAME: add: operand sizes in dimension 0 must agree
// CHECK-NEXT: graphc.add
func.func @found_to_be_one(%x: tensor<?xf64>, %y: tensor<3xf64>) -> tensor<?xf64> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.slice"(%y, %c2, %c1, %c1) : (tensor<3xf64>, index, index, index) -> tensor<?xf64>
  %1 = "graphc.add"(%x, %0) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}
