// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-matmul --canonicalize --cse --split-input-file %s | filecheck %s
// RUN: graphc-opt "--graphc-gpu-matmul=precision=tf32" --canonicalize --cse --split-input-file %s | filecheck %s --check-prefix=SHORT

// Halves: whole matrices from shared memory to registers; the left side is transposed.
// CHECK: gpu.func @tensor_product_0({{.*}}) workgroup(%[[A:.*]] : memref<2x32x72xf16, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %[[B:.*]] : memref<2x32x72xf16
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq
// CHECK: scf.if %[[ALIGNED]]
// CHECK: nvgpu.device_async_copy %{{.*}}, %[[A]]{{.*}}, 8, %{{.*}} {bypassL1}
// CHECK: scf.for %{{.*}} step %c32 iter_args
// CHECK: nvgpu.device_async_wait
// CHECK-NEXT: gpu.barrier
// CHECK: nvgpu.ldmatrix %[[A]]{{.*}} {numTiles = 4 : i32, transpose = true}
// CHECK: nvgpu.ldmatrix %[[B]]{{.*}} {numTiles = 2 : i32, transpose = true}
// CHECK-COUNT-16: nvgpu.mma.sync{{.*}} {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
// CHECK: gpu.func @large_tensor_product_1({{.*}}) workgroup(%{{.*}} : memref<2x32x136xf16, {{.*}} : memref<2x32x136xf16
// CHECK: func.func @halves
// CHECK: %[[LARGE:.*]] = arith.cmpi sge
// CHECK: gpu.launch_func @kernels::@tensor_product_0 {{.*}} threads in (%c128, %c1, %c1)
// CHECK: gpu.launch_func @kernels::@large_tensor_product_1 {{.*}} threads in (%c256, %c1, %c1)
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @halves(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>) outs(%c : memref<?x?xf32>)
      attrs = {graphc.matmul = array<i1: true, false>} {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %0 = arith.mulf %u, %v : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// float64 has one kernel for all sizes.
// CHECK: gpu.func @tensor_product_0({{.*}}) workgroup({{.*}} : memref<2x64x20xf64, {{.*}} : memref<2x64x20xf64
// CHECK-COUNT-64: nvgpu.mma.sync{{.*}} {mmaShape = [8, 8, 4]} : (vector<1x1xf64>, vector<1x1xf64>, vector<1x2xf64>) -> vector<1x2xf64>
// CHECK-NOT: nvgpu.mma.sync
// CHECK: func.func @double
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (j, k)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @double(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, true>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// float32 keeps its digits unless they are said to be too many; then it is rounded to nearest. A matrix of
// few rows has no use for the larger kernel.
// CHECK-NOT: mma.sync
// CHECK: func.func @single
// SHORT: func.func @halves
// SHORT: func.func @double
// SHORT-NOT: large_tensor_product
// SHORT: nvvm.convert.float.to.tf32 %{{.*}} {rnd = #nvvm.fp_rnd_mode<rna>}
// SHORT: nvgpu.mma.sync{{.*}} {mmaShape = [16, 8, 8], tf32Enabled}
// SHORT: func.func @single
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @single(%a: memref<3x?xf32>, %b: memref<?x?xf32>, %c: memref<3x?xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<3x?xf32>, memref<?x?xf32>) outs(%c : memref<3x?xf32>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
