// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-parts --canonicalize --cse %s | filecheck %s

// Neighbouring threads have neighbouring columns; stripes meet in shared memory, parts in a nest.
// CHECK: gpu.func @columns_0({{.*}}) workgroup(%[[STRIPES:.*]] : memref<1024xf32, #gpu.address_space<workgroup>>) kernel
// CHECK: memref.extract_aligned_pointer_as_index
// CHECK: scf.if
// Four rows are under way before the first is added.
// CHECK: scf.for
// CHECK-NOT: arith.addf
// CHECK-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
// CHECK-NOT: vector.load
// CHECK-COUNT-16: arith.addf
// CHECK: } else {
// CHECK: memref.load %{{.*}} : memref<?x?xf32>
// CHECK-COUNT-4: memref.store %{{.*}}, %[[STRIPES]][%{{.*}}]
// CHECK: gpu.barrier
// CHECK: memref.load %[[STRIPES]]
// CHECK: arith.addf
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %block_id_y] : memref<?x?xf32>
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@columns_0
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]}
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: memref<?x?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}
