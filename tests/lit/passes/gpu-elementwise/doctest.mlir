// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-elementwise --canonicalize --cse %s | filecheck %s

// Threads take four floats at a time, if all addresses are multiples of 16, then what is left over.
// CHECK: gpu.func @elementwise_0(%[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>, %[[N:.*]]: index) kernel
// CHECK: memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: memref.extract_aligned_pointer_as_index %[[Y]]
// CHECK: %[[VECTORS:.*]] = arith.select %{{.*}}, %{{.*}}, %c0
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[VECTORS]]
// CHECK: vector.load %[[X]][%{{.*}}] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
// CHECK-COUNT-4: math.sqrt
// CHECK: vector.store %{{.*}}, %[[Y]][%{{.*}}] {alignment = 16 : i64}
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]]
// CHECK: memref.store %{{.*}}, %[[Y]]
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@elementwise_0
#id = affine_map<(i) -> (i)>
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.sqrt %a : f32
    linalg.yield %0 : f32
  }
  return
}
