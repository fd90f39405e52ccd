// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-rows --canonicalize --cse %s | filecheck %s

// The exponentials of a row and their sum: one kernel, in which the array of exponentials does not exist.
// CHECK: gpu.func @whole_0
// CHECK: gpu.func @rows_1({{.*}}) workgroup(%{{[^ ]*}} : memref<32xf32, #gpu.address_space<workgroup>>, %[[SHARED:[^ ]*]] : memref<32xf32, #gpu.address_space<workgroup>>) kernel
// CHECK: scf.for
// CHECK: vector.load %{{.*}} {alignment = 16 : i64} : memref<?x?xf32>, vector<4xf32>
// CHECK: math.exp
// CHECK: gpu.shuffle xor
// CHECK: memref.store %{{.*}}, %[[SHARED]]
// CHECK: gpu.barrier
// CHECK: gpu.shuffle xor
// CHECK-NOT: gpu.barrier
// CHECK: memref.store
// CHECK: gpu.func @rows_2
// CHECK: func.func @main
// CHECK-NOT: linalg
// CHECK: scf.if
// CHECK: gpu.launch_func @kernels::@whole_0
// CHECK: gpu.launch_func @kernels::@rows_2
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@rows_1
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: memref<?x?xf32>, %s: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %n = memref.dim %x, %c1 : memref<?x?xf32>
  %e = memref.alloc(%m, %n) : memref<?x?xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%e : memref<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%s : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : memref<?x?xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}
