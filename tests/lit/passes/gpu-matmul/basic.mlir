// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-matmul --canonicalize --cse --split-input-file %s | filecheck %s

// A batch, with the right side transposed: neighbouring threads read along its last dimension.
// CHECK: gpu.func @product_0
// CHECK: scf.for %[[H:.*]] = %block_id_z
// CHECK: %[[DEEP:.*]] = arith.remui %{{.*}}, %c16
// CHECK: memref.load %{{.*}}[%[[H]], %{{.*}}, %{{.*}}] : memref<?x?x?xi64>
#a = affine_map<(h, i, j, k) -> (h, i, k)>
#b = affine_map<(h, i, j, k) -> (h, j, k)>
#c = affine_map<(h, i, j, k) -> (h, i, j)>
func.func @batch(%a: memref<?x?x?xi64>, %b: memref<?x?x?xi64>, %c: memref<?x?x?xi64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?x?xi64>, memref<?x?x?xi64>) outs(%c : memref<?x?x?xi64>)
      attrs = {graphc.matmul = array<i1: false, true>} {
  ^bb0(%x: i64, %y: i64, %o: i64):
    %0 = arith.muli %x, %y : i64
    %1 = arith.addi %o, %0 : i64
    linalg.yield %1 : i64
  }
  return
}

// -----

// A product with a vector is a reduction of rows.
// CHECK-NOT: gpu.func
// CHECK: func.func @vector
#a = affine_map<(i, k) -> (i, k)>
#b = affine_map<(i, k) -> (k)>
#c = affine_map<(i, k) -> (i)>
func.func @vector(%a: memref<?x?xf64>, %b: memref<?xf64>, %c: memref<?xf64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?xf64>) outs(%c : memref<?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// A batch of two dimensions is one of pairs of indices.
// CHECK: gpu.func @product_0
// CHECK: scf.for %[[N:.*]] = %block_id_z
// CHECK: %[[SECOND:.*]] = arith.remui %[[N]], %{{.*}} : index
// CHECK: %[[FIRST:.*]] = arith.divui %[[N]], %{{.*}} : index
// CHECK: memref.load %{{.*}}[%[[FIRST]], %[[SECOND]], %{{.*}}, %{{.*}}] : memref<?x?x?x?xi64>
#a = affine_map<(g, h, i, j, k) -> (g, h, i, k)>
#b = affine_map<(g, h, i, j, k) -> (g, h, k, j)>
#c = affine_map<(g, h, i, j, k) -> (g, h, i, j)>
func.func @pairs(%a: memref<?x?x?x?xi64>, %b: memref<?x?x?x?xi64>, %c: memref<?x?x?x?xi64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?x?x?xi64>, memref<?x?x?x?xi64>) outs(%c : memref<?x?x?x?xi64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: i64, %y: i64, %o: i64):
    %0 = arith.muli %x, %y : i64
    %1 = arith.addi %o, %0 : i64
    linalg.yield %1 : i64
  }
  return
}
