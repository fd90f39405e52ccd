// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-columns --canonicalize --cse %s | filecheck %s

// Neighbouring threads have neighbouring columns; stripes meet in shared memory, parts in a nest.
// CHECK: gpu.func @columns_0({{.*}}) workgroup(%[[STRIPES:.*]] : memref<16x32xf32, #gpu.address_space<workgroup>>) kernel
// CHECK: %[[S:.*]] = scf.for %[[ROW:.*]] = %{{.*}} to
// CHECK: memref.load %{{.*}}[%[[ROW]], %{{.*}}] : memref<?x?xf32>
// CHECK: memref.store %[[S]], %[[STRIPES]][%thread_id_y, %thread_id_x]
// CHECK: gpu.barrier
// CHECK-COUNT-15: arith.addf
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %block_id_y] : memref<?x?xf32>
// CHECK: gpu.barrier
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@columns_0 {{.*}} threads in (%c32, %c16, %c1)
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
