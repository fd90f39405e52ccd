// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-whole --canonicalize --cse --split-input-file %s | filecheck %s

// Two accumulators, and an array that is computed on the way.
// CHECK: gpu.func @whole_0
// CHECK: %[[T:.*]]:2 = scf.for {{.*}} -> (f64, f64)
// CHECK: arith.addf
// CHECK: memref.store %{{.*}} : memref<?xf64, strided<[?]>>
// CHECK: func.func @both
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : memref<?xf64>, memref<?xf64>) outs
#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>
func.func @both(%x: memref<?xf64, strided<[?]>>, %y: memref<f64>, %z: memref<f64>) {
  linalg.generic {indexing_maps = [#id, #one, #one], iterator_types = ["reduction"]}
      outs(%x, %y, %z : memref<?xf64, strided<[?]>>, memref<f64>, memref<f64>) {
  ^bb0(%a: f64, %o: f64, %p: f64):
    %0 = arith.addf %a, %a : f64
    %1 = arith.addf %o, %a : f64
    %2 = arith.maximumf %p, %a : f64
    linalg.yield %0, %1, %2 : f64, f64, f64
  }
  return
}

// -----

// Few elements are for one block; what is no simple reduction is for others.
// CHECK-NOT: gpu.func
#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>
func.func @left(%x: memref<100xf64>, %w: memref<?xf64>, %y: memref<f64>) {
  linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction"]}
      ins(%x : memref<100xf64>) outs(%y : memref<f64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = arith.addf %o, %a : f64
    linalg.yield %0 : f64
  }
  linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction"]}
      ins(%w : memref<?xf64>) outs(%y : memref<f64>) {
  ^bb0(%a: f64, %o: f64):
    %0 = arith.subf %o, %a : f64
    linalg.yield %0 : f64
  }
  return
}
