// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-matmul --canonicalize --cse %s | filecheck %s

// 16 by 16 threads, each with 4 by 4 sums of a square of 64.
// CHECK: gpu.func @product_0({{.*}}) workgroup(%[[A:.*]] : memref<16x65xf32, #gpu.address_space<workgroup>>, %[[B:.*]] : memref<16x65xf32, #gpu.address_space<workgroup>>) kernel
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c16 iter_args
// CHECK: memref.store %{{.*}}, %[[A]]
// CHECK: memref.store %{{.*}}, %[[B]]
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK-COUNT-8: memref.load %{{.*}} : memref<16x65xf32, #gpu.address_space<workgroup>>
// CHECK-COUNT-16: arith.mulf
// CHECK: gpu.func @large_product_1({{.*}} workgroup(%{{.*}} : memref<2x16x132xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %{{.*}} : memref<2x16x68xf32
// CHECK: vector.load %{{.*}} {alignment = 16
// CHECK: gpu.barrier
// CHECK: func.func @main
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %c128
// CHECK: gpu.launch_func @kernels::@product_0 {{.*}} threads in (%c16, %c16, %c1)
// CHECK: gpu.launch_func @kernels::@large_product_1
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @main(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
