// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-elementwise --canonicalize --cse --split-input-file %s | filecheck %s

// Contiguous dimensions are one; a scalar is loaded, not a vector; halves go eight at a time.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK: vector.load {{.*}} vector<8xf16>
// CHECK-NOT: vector.load
// CHECK: vector.store {{.*}} vector<8xf16>
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0, 1]]
// CHECK: gpu.launch_func @kernels::@elementwise_0
#id = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
func.func @scalar(%x: memref<?x?xf16>, %s: memref<f16>, %y: memref<?x?xf16>) {
  linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : memref<?x?xf16>, memref<f16>) outs(%y : memref<?x?xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %0 = arith.mulf %a, %b : f16
    linalg.yield %0 : f16
  }
  return
}

// -----

// Types of different widths: the widest one has 16 bytes, bools are bytes.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<?xf64>, vector<2xf64>
// CHECK: vector.store {{.*}} {alignment = 2 : i64} : memref<?xi8>, vector<2xi8>
#id = affine_map<(i) -> (i)>
func.func @bools(%x: memref<?xf64>, %y: memref<?xi8>) {
  %c = arith.constant 0.0 : f64
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf64>) outs(%y : memref<?xi8>) {
  ^bb0(%a: f64, %o: i8):
    %0 = arith.cmpf ogt, %a, %c : f64
    %1 = arith.extui %0 : i1 to i8
    linalg.yield %1 : i8
  }
  return
}

// -----

// A row that is broadcast: threads along the columns, rows of threads along the rows, if rows are multiples of
// vectors, four elements at a time.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK: gpu.thread_id y
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for
// CHECK-COUNT-2: vector.load {{.*}} {alignment = 16 : i64} {{.*}} vector<4xf32>
// CHECK: vector.store {{.*}} vector<4xf32>
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.load %{{.*}}[%[[J]]] : memref<?xf32>
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @row(%x: memref<?x?xf32>, %r: memref<?xf32>, %y: memref<?x?xf32>) {
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A strided input is an argument with its strides; nothing of it is assumed.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK-NOT: vector.load
// CHECK: memref.load %{{.*}} : memref<?xf32, strided<[?], offset: ?>>
// CHECK: args({{.*}} memref<?xf32, strided<[?], offset: ?>>
#id = affine_map<(i) -> (i)>
func.func @strided(%x: memref<?xf32, strided<[?], offset: ?>>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32, strided<[?], offset: ?>>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// Rows of a larger array: where they begin, and how far apart they are, says whether vectors are aligned.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK: memref.extract_strided_metadata
// CHECK: vector.store {{.*}} : memref<?x?xf32, strided<[?, 1], offset: ?>>, vector<4xf32>
#id = affine_map<(i, j) -> (i, j)>
func.func @part(%x: memref<?x?xf32>, %y: memref<?x?xf32, strided<[?, 1], offset: ?>>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?x?xf32, strided<[?, 1], offset: ?>>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

// A reduction that no other pass took: each thread runs it.
// CHECK-LABEL: gpu.func @elementwise_0
// CHECK: %[[SUM:.*]] = scf.for
// CHECK: arith.select
// CHECK: memref.store %[[SUM]]
// CHECK-LABEL: gpu.func @elementwise_1
// CHECK: memref.store
// CHECK-LABEL: gpu.func @elementwise_2
// CHECK: memref.load
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @others(%x: memref<?x?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
  %c = arith.constant 0.0 : f32
  linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.cmpf ogt, %a, %o : f32
    %1 = arith.select %0, %a, %o : f32
    linalg.yield %1 : f32
  }
  linalg.fill ins(%c : f32) outs(%z : memref<?xf32>)
  memref.copy %y, %z : memref<?xf32> to memref<?xf32>
  return
}
