// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-rows --canonicalize --cse --split-input-file %s | filecheck %s

// Softmax: what the second nest wrote into the result is computed again by the third, which alone writes it.
// Where threads hold the row, they read it once, eight vectors at a time, and compute each exponential once.
// CHECK: gpu.func @rows_2
// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-8: vector.load %{{.*}} : memref<?x?xf32>, vector<4xf32>
// CHECK: } else {
// CHECK-COUNT-32: memref.load %{{.*}} : memref<?x?xf32>
// CHECK: arith.maximumf
// CHECK: gpu.barrier
// CHECK-COUNT-32: math.exp
// CHECK-NOT: math.exp
// CHECK: gpu.barrier
// CHECK-NOT: math.exp
// CHECK: %[[TOTAL:.*]] = arith.addf %{{.*}}, %cst
// CHECK-NOT: math.exp
// CHECK: arith.divf %{{.*}}, %[[TOTAL]]
// CHECK-NOT: math.exp
// CHECK-COUNT-8: vector.store %{{.*}} : memref<?x?xf32>
// CHECK-COUNT-32: memref.store %{{.*}} : memref<?x?xf32>
// CHECK: } else {
// Longer rows are read for the maximum and the sum together, with four vectors under way, and again at last.
// CHECK: scf.for
// CHECK-COUNT-4: vector.load
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: math.exp
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: math.exp
// CHECK: vector.store %{{.*}} : memref<?x?xf32>
// CHECK: memref.store %{{.*}} : memref<?x?xf32>
// CHECK-NOT: memref.store
// CHECK: gpu.return
// CHECK: func.func @softmax
// CHECK: scf.if
// CHECK: linalg.generic
// CHECK: } else {
// CHECK-NOT: linalg.generic
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %m = memref.dim %x, %c0 : memref<?x?xf32>
  %most = memref.alloc(%m) : memref<?xf32>
  linalg.fill ins(%low : f32) outs(%most : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%most : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.maximumf %o, %a : f32
    linalg.yield %0 : f32
  }
  %sum = memref.alloc(%m) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #row, #id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %most : memref<?x?xf32>, memref<?xf32>) outs(%y, %sum : memref<?x?xf32>, memref<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    %2 = arith.addf %p, %1 : f32
    linalg.yield %1, %2 : f32, f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %sum : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Rows of several dimensions, and a double in two shuffles.
// CHECK: gpu.func @rows_1
// CHECK: arith.divui
// CHECK: arith.trunci %{{.*}} : i64 to i32
// CHECK: gpu.shuffle xor
// CHECK: gpu.shuffle xor
// CHECK: memref<32xf64, #gpu.address_space<workgroup>>
#id = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(h, i, j) -> (h, i)>
func.func @double(%x: memref<?x?x?xf64>, %y: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : memref<?x?x?xf64>) outs(%y : memref<?x?xf64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = arith.mulf %o, %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// A fill of an array that turns out to have other rows ends the run before it; what reads a row's element of
// another row begins a new one.
// CHECK: gpu.func @rows_2
// CHECK: gpu.return
// CHECK: func.func @apart
// CHECK: gpu.launch_func @kernels::@rows_2
// CHECK: } else {
// CHECK: gpu.launch_func @kernels::@rows_1
// CHECK: linalg.generic
// CHECK: linalg.generic
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @apart(%x: memref<?x?xf32>, %s: memref<?xf32>, %t: memref<?xf32>, %y: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  linalg.fill ins(%zero : f32) outs(%t : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Rows of which there are known to be few, and long, have several blocks each, and nothing is left to choose.
// CHECK: gpu.func @whole_0
// CHECK: gpu.func @rows_1
// CHECK: func.func @long
// CHECK-NOT: scf.if
// CHECK: gpu.launch_func @kernels::@whole_0 blocks in (%c13, %c3, %c1)
// CHECK: gpu.launch_func @kernels::@rows_1
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @long(%x: memref<3x100000xf32>, %s: memref<3xf32>) {
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<3x100000xf32>) outs(%s : memref<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Elementwise work alone is not for this pass; nor are extremes that a comparison selects.
// CHECK-NOT: gpu.func
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @none(%x: memref<?x?xf32>, %s: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.cmpf ogt, %a, %o : f32
    %1 = arith.select %0, %a, %o : f32
    linalg.yield %1 : f32
  }
  return
}
