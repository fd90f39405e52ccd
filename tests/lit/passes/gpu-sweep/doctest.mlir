// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-sweep --canonicalize --cse %s | filecheck %s

// A'(A x): a row is read once, by vectors that are all under way before the first product, reduced, and added to
// the sums of the columns; blocks write parts, which a nest adds up.
// CHECK: gpu.func @sweep_0
// CHECK: scf.for %{{.*}} = %{{.*}} to %c100000 step
// CHECK-NOT: arith.mulf
// CHECK-COUNT-8: vector.load %{{.*}} {alignment = 16 : i64}
// CHECK-NOT: vector.load
// CHECK-COUNT-16: arith.mulf
// CHECK-COUNT-5: gpu.shuffle xor
// CHECK-COUNT-16: arith.mulf
// CHECK: scf.yield
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}, %block_id_x] : memref<512x264xf32>
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@sweep_0 blocks in (%c264, %c1, %c1) threads in (%c32, %c8, %c1)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : memref<512x264xf32>)
#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%a: memref<100000x512xf32>, %x: memref<512xf32>, %y: memref<512xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = memref.alloc() : memref<100000xf32>
  linalg.fill ins(%zero : f32) outs(%z : memref<100000xf32>)
  linalg.generic {indexing_maps = [#id, #column, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a, %x : memref<100000x512xf32>, memref<512xf32>) outs(%z : memref<100000xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<512xf32>)
  linalg.generic {indexing_maps = [#id, #row, #column], iterator_types = ["reduction", "parallel"]}
      ins(%a, %z : memref<100000x512xf32>, memref<100000xf32>) outs(%y : memref<512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
