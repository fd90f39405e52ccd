// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fusion --graphc-convert-to-linalg --split-input-file %s | filecheck %s

// One generic with two results; the tensor results become buffers that are written in place.
// CHECK-LABEL: @main
// CHECK-SAME: %[[OUT:[a-z0-9]+]]: memref<?xf64>, %{{.*}}: memref<f64>
// CHECK: linalg.generic
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f64, f64
// CHECK-NOT: linalg.generic
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
func.func @main(%x: tensor<?xf64>) -> (tensor<?xf64>, tensor<f64>) {
  %0 = "graphc.sqr"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
  return %0, %1 : tensor<?xf64>, tensor<f64>
}

// -----

// Bools are stored as bytes, unsigned integers as signless ones.
// CHECK-LABEL: @storage
// CHECK-SAME: tensor<?xi8>{{.*}}tensor<?xi32>
// CHECK: arith.cmpi ne
func.func @storage(%c: tensor<?xi1>, %x: tensor<?xui32>) -> tensor<?xui32> {
  %0 = "graphc.switch"(%c, %x, %x) : (tensor<?xi1>, tensor<?xui32>, tensor<?xui32>) -> tensor<?xui32>
  return %0 : tensor<?xui32>
}

// -----

// Views cost nothing: a transpose and a broadcast are indexing maps.
// CHECK-DAG: affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: @views
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
func.func @views(%x: tensor<?x?xf64>, %v: tensor<?xf64>) -> tensor<?x?xf64> {
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: 1, 0>} : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.dimshuffle"(%v) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
  %2 = "graphc.add"(%0, %1) : (tensor<?x?xf64>, tensor<1x?xf64>) -> tensor<?x?xf64>
  return %2 : tensor<?x?xf64>
}

// -----

// A function of sizes keeps its results.
// CHECK-LABEL: @shapes
// CHECK-SAME: -> index
func.func @shapes(%x: tensor<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %0 = tensor.dim %x, %c0 : tensor<?xf64>
  return %0 : index
}
