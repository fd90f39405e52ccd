// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-rematerialise=budget=5000 --split-input-file %s | filecheck %s
// RUN: graphc-opt --graphc-fusion --graphc-rematerialise=budget=9000 --split-input-file %s | filecheck %s --check-prefix=ENOUGH

// Three matrices of 2048 bytes are alive at the third product. The sine is computed again in the loop that
// reads it, from an argument, and not held meanwhile. With more memory it is left alone.
// CHECK: graphc.recomputed = {arrays = [{bytes = 2048 : i64, flops = 256 : i64, node = "", times = 1 : i64}]
// CHECK-LABEL: @main
// CHECK-SAME: graphc.scheduled
// CHECK: graphc.sin{{.*}}cluster = 0
// CHECK: graphc.matmul
// CHECK: graphc.matmul
// CHECK: [[D:%.*]] = "graphc.matmul"
// CHECK: [[AGAIN:%.*]] = "graphc.sin"(%arg0) {cluster = 1
// CHECK: "graphc.mul"([[D]], [[AGAIN]]) {cluster = 1
// ENOUGH-LABEL: @main
// ENOUGH-NOT: graphc.scheduled
// ENOUGH: [[A:%.*]] = "graphc.sin"
// ENOUGH: "graphc.mul"(%{{.*}}, [[A]])
module {
  func.func @main(%x: tensor<16x16xf64>, %w: tensor<16x16xf64>) -> tensor<16x16xf64> {
    %a = "graphc.sin"(%x) : (tensor<16x16xf64>) -> tensor<16x16xf64>
    %b = "graphc.matmul"(%a, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %c = "graphc.matmul"(%b, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %d = "graphc.matmul"(%c, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %e = "graphc.mul"(%d, %a) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    return %e : tensor<16x16xf64>
  }
}

// -----

// A product needs memory of its own, right before it is read; the view of it is made again.
// CHECK-LABEL: @main
// CHECK: [[A:%.*]] = "graphc.matmul"(%arg0, %arg1)
// CHECK: "graphc.matmul"([[A]], %arg1)
// CHECK: "graphc.matmul"
// CHECK: [[D:%.*]] = "graphc.matmul"
// CHECK: [[AGAIN:%.*]] = "graphc.matmul"(%arg0, %arg1)
// CHECK: [[VIEW:%.*]] = "graphc.dimshuffle"([[AGAIN]])
// CHECK: "graphc.mul"([[D]], [[VIEW]])
module {
  func.func @main(%x: tensor<16x16xf64>, %w: tensor<16x16xf64>) -> tensor<16x16xf64> {
    %a = "graphc.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %t = "graphc.dimshuffle"(%a) {order = array<i64: 1, 0>} : (tensor<16x16xf64>) -> tensor<16x16xf64>
    %b = "graphc.matmul"(%a, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %c = "graphc.matmul"(%b, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %d = "graphc.matmul"(%c, %w) {transpose_a = false, transpose_b = false} : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    %e = "graphc.mul"(%d, %t) : (tensor<16x16xf64>, tensor<16x16xf64>) -> tensor<16x16xf64>
    return %e : tensor<16x16xf64>
  }
}

// -----

// Arrays of unknown size count as none, and are counted.
// CHECK: unknown = 4
// CHECK-LABEL: @main
// CHECK-COUNT-1: graphc.sin
// CHECK-NOT: graphc.sin
module {
  func.func @main(%x: tensor<?x?xf64>, %w: tensor<?x?xf64>) -> tensor<?x?xf64> {
    %a = "graphc.sin"(%x) : (tensor<?x?xf64>) -> tensor<?x?xf64>
    %b = "graphc.matmul"(%a, %w) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
    %c = "graphc.matmul"(%b, %w) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
    %d = "graphc.matmul"(%c, %w) {transpose_a = false, transpose_b = false} : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
    %e = "graphc.mul"(%d, %a) : (tensor<?x?xf64>, tensor<?x?xf64>) -> tensor<?x?xf64>
    return %e : tensor<?x?xf64>
  }
}
