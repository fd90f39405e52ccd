// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-shapes %s --split-input-file | filecheck %s

// Sizes and their check move to @shapes; the check of values stays in @main.
// CHECK-LABEL: func.func @main
// CHECK-NOT: bad size
// CHECK: bad value
// CHECK: graphc.exp
// CHECK-LABEL: func.func @shapes
// CHECK-SAME: -> index
// CHECK: bad size
// CHECK-NOT: bad value
// CHECK-NOT: graphc.exp
// CHECK: return %{{.*}} : index
func.func @main(%x: tensor<?xf64>, %i: tensor<?xi64>) -> tensor<?xf64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %m = tensor.dim %i, %c0 : tensor<?xi64>
  %same = arith.cmpi eq, %n, %m : index
  "graphc.check"(%same, %n, %m) {message = "bad size", error = "ValueError"} : (i1, index, index) -> ()
  %0 = "graphc.reduce_max"(%i) {axes = array<i64: 0>} : (tensor<?xi64>) -> tensor<i64>
  %1 = tensor.extract %0[] : tensor<i64>
  %2 = arith.index_cast %1 : i64 to index
  %less = arith.cmpi slt, %2, %n : index
  "graphc.check"(%less, %2, %n) {message = "bad value", error = "IndexError"} : (i1, index, index) -> ()
  %3 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %3 : tensor<?xf64>
}

// -----

// Static results have no sizes to return.
// CHECK-LABEL: func.func @shapes(%arg0: tensor<3xf64>) {
// CHECK-NEXT: return
func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  return %x : tensor<3xf64>
}
