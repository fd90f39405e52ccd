// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-parts --canonicalize --cse --split-input-file %s | filecheck %s

// Each block writes one element; a nest that reduces these follows, after the fill of the result.
// CHECK: gpu.func @whole_0(%[[X:.*]]: memref<?xf32>, %{{.*}}: index, %[[PARTS:.*]]: memref<?xf32>)
// CHECK: scf.for {{.*}} -> (f32, f32, f32, f32)
// CHECK: vector.load %[[X]]
// CHECK: scf.for {{.*}} -> (f32)
// CHECK: memref.load %[[X]]
// CHECK: gpu.shuffle xor
// CHECK: memref.store %{{.*}}, %[[PARTS]][%block_id_x]
// CHECK: func.func @main
// CHECK: %[[A:.*]] = memref.alloc(%[[BLOCKS:.*]]) : memref<?xf32>
// CHECK: gpu.launch_func @kernels::@whole_0 blocks in (%[[BLOCKS]], %c1, %c1) threads in (%c256
// CHECK: linalg.fill
// CHECK: linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[A]] : memref<?xf32>)
#id = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>
func.func @main(%x: memref<?xf32>, %y: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<f32>)
  linalg.generic {indexing_maps = [#id, #one], iterator_types = ["reduction"]}
      ins(%x : memref<?xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %o, %a : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

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
