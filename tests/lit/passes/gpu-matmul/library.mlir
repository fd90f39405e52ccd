// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-matmul --canonicalize --cse --split-input-file %s | filecheck %s
// RUN: graphc-opt "--graphc-gpu-matmul=precision=tf32" --canonicalize --cse --split-input-file %s | filecheck %s --check-prefix=SHORT

// Both launches of a product say that a library may compute it, and where its arrays are among the arguments.
// CHECK: func.func @batch
// CHECK: gpu.launch_func @kernels::@product_0 {{.*}} {graphc.product = {adds = true, arrays = {{\[}}[[A:[0-9]+]], [[B:[0-9]+]], [[C:[0-9]+]]{{\]}}, form = "aik,ajk->aij", launches = 2 : i64, number = 0 : i64, short = false}}
// CHECK: gpu.launch_func @kernels::@large_product_1 {{.*}} {graphc.product = {adds = true, arrays = {{\[}}[[A]], [[B]], [[C]]{{\]}}, form = "aik,ajk->aij", launches = 2 : i64, number = 0 : i64, short = false}}
// SHORT: func.func @batch
// SHORT-COUNT-2: gpu.launch_func {{.*}} short = true}}
#a = affine_map<(h, i, j, k) -> (h, i, k)>
#b = affine_map<(h, i, j, k) -> (h, j, k)>
#c = affine_map<(h, i, j, k) -> (h, i, j)>
func.func @batch(%a: memref<?x?x?xf32>, %b: memref<?x?x?xf32>, %c: memref<?x?x?xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?x?xf32>, memref<?x?x?xf32>) outs(%c : memref<?x?x?xf32>)
      attrs = {graphc.matmul = array<i1: false, true>} {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Two products have different numbers; complex numbers may be multiplied by their parts.
// CHECK: func.func @two
// CHECK: gpu.launch_func @kernels::@product_{{.*}} form = "ik,kj->ij", launches = 1 : i64, number = 0 : i64
// CHECK: gpu.launch_func @kernels::@product_{{.*}} form = "ik,kj->ij", launches = 1 : i64, number = 1 : i64
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @two(%a: memref<?x?xcomplex<f32>>, %b: memref<?x?xcomplex<f32>>, %c: memref<?x?xcomplex<f32>>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xcomplex<f32>>, memref<?x?xcomplex<f32>>) outs(%c : memref<?x?xcomplex<f32>>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: complex<f32>, %y: complex<f32>, %o: complex<f32>):
    %0 = complex.mul %x, %y : complex<f32>
    %1 = complex.add %o, %0 : complex<f32>
    linalg.yield %1 : complex<f32>
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xcomplex<f32>>, memref<?x?xcomplex<f32>>) outs(%c : memref<?x?xcomplex<f32>>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: complex<f32>, %y: complex<f32>, %o: complex<f32>):
    %0 = complex.re %x : complex<f32>
    %1 = complex.im %x : complex<f32>
    %2 = complex.re %y : complex<f32>
    %3 = complex.im %y : complex<f32>
    %4 = arith.mulf %0, %2 : f32
    %5 = arith.mulf %1, %3 : f32
    %6 = arith.subf %4, %5 : f32
    %7 = arith.mulf %0, %3 : f32
    %8 = arith.mulf %1, %2 : f32
    %9 = arith.addf %7, %8 : f32
    %10 = complex.create %6, %9 : complex<f32>
    %11 = complex.add %o, %10 : complex<f32>
    linalg.yield %11 : complex<f32>
  }
  return
}

// -----

// 127 by 128 by 128 multiplications are too few for a library.
// CHECK: func.func @small
// CHECK-NOT: graphc.product
// CHECK: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @small(%a: memref<127x128xf64>, %b: memref<128x128xf64>, %c: memref<127x128xf64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<127x128xf64>, memref<128x128xf64>) outs(%c : memref<127x128xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// Nor is it asked for integers.
// CHECK: func.func @integers
// CHECK-NOT: graphc.product
// CHECK: return
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @integers(%a: memref<?x?xi32>, %b: memref<?x?xi32>, %c: memref<?x?xi32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xi32>, memref<?x?xi32>) outs(%c : memref<?x?xi32>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %0 = arith.muli %x, %y : i32
    %1 = arith.addi %o, %0 : i32
    linalg.yield %1 : i32
  }
  return
}

// -----

// A result that is filled with zeros for the product alone is stored by the kernels, and not filled.
// CHECK: gpu.func @tensor_product_0
// CHECK-NOT: arith.addf
// CHECK: func.func @zeros
// CHECK-NOT: linalg.fill
// CHECK: graphc.product = {adds = false
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @zeros(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<?x?xf64>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// What is filled with other numbers, or read before the product, is added to.
// CHECK: func.func @others
// CHECK: linalg.fill
// CHECK: graphc.product = {adds = true
// CHECK: linalg.fill
// CHECK: memref.load
// CHECK: graphc.product = {adds = true
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @others(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>, %d: memref<?x?xf64>) -> f64 {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %i = arith.constant 0 : index
  linalg.fill ins(%one : f64) outs(%c : memref<?x?xf64>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.fill ins(%zero : f64) outs(%d : memref<?x?xf64>)
  %seen = memref.load %d[%i, %i] : memref<?x?xf64>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%d : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %o: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %o, %0 : f64
    linalg.yield %1 : f64
  }
  return %seen : f64
}
