// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-transpose --canonicalize --cse %s | filecheck %s

// Rows of the input go to shared memory, columns come back; one element more in a row avoids bank conflicts.
// CHECK: gpu.func @transpose_0({{.*}}) workgroup(%[[T:.*]] : memref<32x33xf32, #gpu.address_space<workgroup>>) kernel
// CHECK: memref.store %{{.*}}, %[[T]][%{{.*}}, %thread_id_x]
// CHECK: gpu.barrier
// CHECK: memref.load %[[T]][%thread_id_x, %{{.*}}]
// CHECK: arith.negf
// CHECK: gpu.barrier
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@transpose_0 {{.*}} threads in (%c32, %c8, %c1)
#id = affine_map<(i, j) -> (i, j)>
#across = affine_map<(i, j) -> (j, i)>
func.func @main(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#across, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}
