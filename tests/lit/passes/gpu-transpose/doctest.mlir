// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-transpose --canonicalize --cse %s | filecheck %s

// Rows of the input go to shared memory, columns come back; one element more in a row avoids bank conflicts.
// CHECK: gpu.func @transpose_0({{.*}}) workgroup(%[[T:.*]] : memref<64x65xf32, #gpu.address_space<workgroup>>) kernel
// Four vectors are under way before the first is stored; the other branch has elements that lie anywhere.
// CHECK: scf.if
// CHECK-NOT: memref.store
// CHECK-COUNT-4: vector.load %{{.*}} {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
// CHECK-COUNT-16: memref.store %{{.*}}, %[[T]][
// CHECK: gpu.barrier
// CHECK: memref.load %[[T]][
// CHECK: arith.negf
// CHECK: vector.store %{{.*}} {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
// CHECK: } else {
// CHECK-COUNT-16: memref.load %{{.*}} : memref<?x?xf32>{{$}}
// CHECK: gpu.barrier
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@transpose_0 {{.*}} threads in (%c16, %c16, %c1)
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
