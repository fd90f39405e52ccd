// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-sweep --canonicalize --cse --split-input-file %s | filecheck %s

// Sizes that are not known: the host chooses, where all is left as it is if rows are few or long.
// CHECK-LABEL: func.func @unknown
// CHECK: arith.cmpi sge, %{{.*}}, %c4096
// CHECK: scf.if
// CHECK: gpu.launch_func @kernels::@sweep_0
// CHECK: } else {
// CHECK: linalg.generic
// CHECK: linalg.generic
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
func.func @unknown(%a: memref<?x?xf32>, %z: memref<?xf32>, %y: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x?xf32>
  %s = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<?xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<?x?xf32>) outs(%s : memref<?xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %o, %p : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a, %s : memref<?x?xf32>, memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// What a row adds depends on the sum of all rows: the array has to be read twice.
// CHECK-LABEL: func.func @twice
// CHECK-NOT: gpu.launch_func
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @twice(%a: memref<100000x512xf32>, %t: memref<f32>, %y: memref<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<100000xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<100000xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<100000x512xf32>) outs(%s : memref<100000xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %o, %p : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]}
      ins(%s : memref<100000xf32>) outs(%t : memref<f32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %o, %p : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#one, #none, #one], iterator_types = ["parallel"]}
      ins(%s, %t : memref<100000xf32>, memref<f32>) outs(%s : memref<100000xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.divf %p, %q : f32
    linalg.yield %0 : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a, %s : memref<100000x512xf32>, memref<100000xf32>) outs(%y : memref<512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
