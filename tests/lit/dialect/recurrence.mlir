// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @cumulative
func.func @cumulative(%x: tensor<?x3xf64>, %h: tensor<1x3xf64>, %n: index) -> tensor<?x3xf64> {
  // CHECK: "graphc.cumulative"(%{{.*}}) {keep_initial = false, kind = "add", reassociate = false, reverse = false}
  %0 = "graphc.cumulative"(%x, %h, %n) {kind = "add", reverse = false, keep_initial = false, reassociate = false} : (tensor<?x3xf64>, tensor<1x3xf64>, index) -> tensor<?x3xf64>
  return %0 : tensor<?x3xf64>
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%a: tensor<1x1xf64>, %b: tensor<4x3xf64>, %h: tensor<1x3xf64>, %n: index) -> tensor<5x3xf64> {
  // CHECK: "graphc.linear_recurrence"(%{{.*}}) {{.*}} -> tensor<5x3xf64>
  %0 = "graphc.linear_recurrence"(%a, %b, %h, %n) {reverse = true, keep_initial = true, reassociate = false} : (tensor<1x1xf64>, tensor<4x3xf64>, tensor<1x3xf64>, index) -> tensor<5x3xf64>
  return %0 : tensor<5x3xf64>
}
