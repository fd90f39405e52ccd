// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-constant-folding %s --split-input-file | filecheck %s

// CHECK-LABEL: @elementwise
// CHECK-NEXT: arith.constant dense<[4.000000e+00, 9.000000e+00]> : tensor<2xf64>
// CHECK-NEXT: return
func.func @elementwise() -> tensor<2xf64> {
  %a = arith.constant dense<[2.0, 3.0]> : tensor<2xf64>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %0 = "graphc.mul"(%a, %b) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  %1 = "graphc.add"(%0, %a) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %1 : tensor<2xf64>
}

// -----

// Unsigned literals are graphc.constant, and wrap as NumPy's.
// CHECK-LABEL: @unsigned
// CHECK: "graphc.constant"() {value = dense<4> : tensor<1xui8>}
// CHECK-NEXT: return
func.func @unsigned() -> tensor<1xui8> {
  %a = "graphc.constant"() {value = dense<250> : tensor<1xui8>} : () -> tensor<1xui8>
  %b = "graphc.constant"() {value = dense<10> : tensor<1xui8>} : () -> tensor<1xui8>
  %0 = "graphc.add"(%a, %b) : (tensor<1xui8>, tensor<1xui8>) -> tensor<1xui8>
  return %0 : tensor<1xui8>
}

// -----

// An index out of bounds stays, to raise when the program runs; so does a result that is too large.
// CHECK-LABEL: @kept
// CHECK: graphc.take
// CHECK: graphc.broadcast_to
func.func @kept() -> (tensor<1xf64>, tensor<1000xf64>) {
  %i = arith.constant dense<[7]> : tensor<1xi64>
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf64>
  %0 = "graphc.take"(%a, %i) {axis = 0 : i64} : (tensor<2xf64>, tensor<1xi64>) -> tensor<1xf64>
  %n = arith.constant 1000 : index
  %s = arith.constant dense<1.0> : tensor<f64>
  %1 = "graphc.broadcast_to"(%s, %n) : (tensor<f64>, index) -> tensor<1000xf64>
  return %0, %1 : tensor<1xf64>, tensor<1000xf64>
}
