// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-columns --canonicalize --cse --split-input-file %s | filecheck %s

// A batch is the third dimension of the grid.
// CHECK: gpu.func @columns_0
// CHECK: scf.for %[[H:.*]] = %block_id_z
// CHECK: memref.load %{{.*}}[%[[H]], %{{.*}}, %{{.*}}] : memref<?x?x?xf64>
// CHECK: memref.store %{{.*}}[%[[H]], %{{.*}}, %block_id_y] : memref<?x?x?xf64>
#id = affine_map<(h, i, j) -> (h, i, j)>
#column = affine_map<(h, i, j) -> (h, j)>
func.func @batch(%x: memref<?x?x?xf64>, %y: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : memref<?x?x?xf64>) outs(%y : memref<?x?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = arith.maximumf %o, %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// Rows are for another pass.
// CHECK-NOT: gpu.func
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @rows(%x: memref<?x?xf64>, %y: memref<?xf64>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = arith.addf %o, %a : f64
    linalg.yield %0 : f64
  }
  return
}
