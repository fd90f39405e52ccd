// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-half-products --canonicalize --split-input-file %s | filecheck %s

// A transposed side becomes a flag, also of a batch.
// CHECK-LABEL: @transposed
// CHECK-NEXT: "graphc.matmul"(%arg0, %arg1) {transpose_a = true, transpose_b = true} : (tensor<?x?x?xf16>, tensor<?x?x?xf16>) -> tensor<?x?x?xf32>
func.func @transposed(%a: tensor<?x?x?xf16>, %b: tensor<?x?x?xf16>) -> tensor<?x?x?xf32> {
  %t = "graphc.dimshuffle"(%a) {order = array<i64: 0, 2, 1>} : (tensor<?x?x?xf16>) -> tensor<?x?x?xf16>
  %x = "graphc.cast"(%t) : (tensor<?x?x?xf16>) -> tensor<?x?x?xf32>
  %y = "graphc.cast"(%b) : (tensor<?x?x?xf16>) -> tensor<?x?x?xf32>
  %p = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = true} : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %p : tensor<?x?x?xf32>
}

// -----

// One side of float32 is no half.
// CHECK-LABEL: @mixed
// CHECK: "graphc.matmul"(%{{.*}}, %arg1) {{.*}} : (tensor<?x?xf32>, tensor<?x?xf32>)
func.func @mixed(%a: tensor<?x?xf16>, %b: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %x = "graphc.cast"(%a) : (tensor<?x?xf16>) -> tensor<?x?xf32>
  %p = "graphc.matmul"(%x, %b) {transpose_a = false, transpose_b = false} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}

// -----

// Integers that become float32 are no halves either.
// CHECK-LABEL: @integers
// CHECK: "graphc.matmul"({{.*}}) {{.*}} : (tensor<?x?xf32>, tensor<?x?xf32>)
func.func @integers(%a: tensor<?x?xi8>, %b: tensor<?x?xi8>) -> tensor<?x?xf32> {
  %x = "graphc.cast"(%a) : (tensor<?x?xi8>) -> tensor<?x?xf32>
  %y = "graphc.cast"(%b) : (tensor<?x?xi8>) -> tensor<?x?xf32>
  %p = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}

// -----

// Repeated, as another side has a batch: halves are.
// CHECK-LABEL: @repeated
// CHECK: %[[B:.*]] = "graphc.broadcast_to"(%{{.*}}) : (tensor<1x?x?xf16>, index, index, index) -> tensor<?x?x?xf16>
// CHECK: "graphc.matmul"(%arg0, %[[B]]) {{.*}} : (tensor<?x?x?xf16>, tensor<?x?x?xf16>) -> tensor<?x?x?xf32>
func.func @repeated(%a: tensor<?x?x?xf16>, %b: tensor<1x?x?xf16>, %h: index, %k: index, %n: index) -> tensor<?x?x?xf32> {
  %x = "graphc.cast"(%a) : (tensor<?x?x?xf16>) -> tensor<?x?x?xf32>
  %y = "graphc.cast"(%b) : (tensor<1x?x?xf16>) -> tensor<1x?x?xf32>
  %z = "graphc.broadcast_to"(%y, %h, %k, %n) : (tensor<1x?x?xf32>, index, index, index) -> tensor<?x?x?xf32>
  %p = "graphc.matmul"(%x, %z) {transpose_a = false, transpose_b = false} : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %p : tensor<?x?x?xf32>
}
