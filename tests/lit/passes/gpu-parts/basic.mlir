// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-parts --canonicalize --cse --split-input-file %s | filecheck %s

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

// Positions of extremes: of equal elements the one at the lower position is taken.
// CHECK: gpu.func @columns_0({{.*}}) workgroup(%{{.*}} : memref<1024xf32, {{.*}}>, %{{.*}} : memref<1024xi64, {{.*}}>)
// CHECK-COUNT-2: vector.load %{{.*}} : memref<?x?xf32>, vector<4xf32>
// CHECK: arith.cmpi ult, %{{.*}} : i64
// CHECK: func.func @position
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : memref<?x?xf32>, memref<?x?xi64>) outs({{.*}}) attrs = {graphc.few, graphc.first = ["gt", ""]}
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @position(%x: memref<?x?xf32>, %y: memref<?xf32>, %p: memref<?xi64>) {
  linalg.generic {indexing_maps = [#id, #column, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y, %p : memref<?xf32>, memref<?xi64>) attrs = {graphc.first = ["gt", ""]} {
  ^bb0(%a: f32, %o: f32, %q: i64):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.cmpf ogt, %a, %o : f32
    %3 = arith.select %2, %a, %o : f32
    %4 = arith.select %2, %1, %q : i64
    linalg.yield %3, %4 : f32, i64
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
