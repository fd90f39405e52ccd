// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-transpose --canonicalize --cse --split-input-file %s | filecheck %s

// One input lies across, the other one does not; blocks are along a third dimension, too.
// CHECK: gpu.func @transpose_0
// CHECK: memref.store %{{.*}} : memref<32x33xf64, #gpu.address_space<workgroup>>
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : memref<?x?x?xf64>
// CHECK: arith.addf
#id = affine_map<(h, i, j) -> (h, i, j)>
#across = affine_map<(h, i, j) -> (h, j, i)>
func.func @mixed(%x: memref<?x?x?xf64>, %z: memref<?x?x?xf64>, %y: memref<?x?x?xf64>) {
  linalg.generic {indexing_maps = [#across, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %z : memref<?x?x?xf64>, memref<?x?x?xf64>) outs(%y : memref<?x?x?xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %0 = arith.addf %a, %b : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// A row that is broadcast is no transpose; nor is a matrix of one column.
// CHECK-NOT: gpu.func
#id = affine_map<(i, j) -> (i, j)>
#across = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
func.func @none(%x: memref<?xf64>, %z: memref<1x?xf64>, %y: memref<?x?xf64>, %w: memref<?x1xf64>) {
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?xf64>) outs(%y : memref<?x?xf64>) {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  }
  linalg.generic {indexing_maps = [#across, #id], iterator_types = ["parallel", "parallel"]}
      ins(%z : memref<1x?xf64>) outs(%w : memref<?x1xf64>) {
  ^bb0(%a: f64, %o: f64):
    linalg.yield %a : f64
  }
  return
}
