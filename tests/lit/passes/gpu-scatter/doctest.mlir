// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scatter --canonicalize --cse %s | filecheck %s

// The positions, their order, and for each position of its own one thread that adds up.
// CHECK: gpu.func @places_0
// CHECK: %[[RAW:.*]] = memref.load %{{.*}} : memref<?xi64>
// CHECK: memref.store %[[RAW]], %{{.*}} : memref<?xi64>
// CHECK: gpu.func @sort_1
// CHECK: gpu.func @scatter_5
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: %[[OTHER:.*]] = arith.cmpi ne
// CHECK: %[[HEAD:.*]] = arith.ori %[[FIRST]], %[[OTHER]]
// CHECK: scf.if %[[HEAD]] {
// CHECK: %[[OLD:.*]] = memref.load %[[X:.*]][%[[ROW:.*]]] : memref<?xf32>
// CHECK: %[[END:.*]]:2 = scf.while
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} to %[[END]]#0 step %c1 iter_args(%[[S:.*]] = %[[OLD]])
// CHECK: %[[NEW:.*]] = arith.addf %[[S]], %{{.*}}
// CHECK: scf.yield %[[NEW]]
// CHECK: memref.store %[[SUM]], %[[X]][%[[ROW]]]
// CHECK: func.func @main
// CHECK-NOT: scf.for
// CHECK: gpu.launch_func @kernels::@places_0
// CHECK: gpu.launch_func @kernels::@sort_1
// CHECK: gpu.launch_func @kernels::@scatter_5
func.func @main(%x: memref<?xf32>, %i: memref<?xi64>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %0 = memref.load %i[%k] : memref<?xi64>
    %row = arith.index_cast %0 : i64 to index
    %1 = memref.load %x[%row] : memref<?xf32>
    %2 = memref.load %y[%k] : memref<?xf32>
    %3 = arith.addf %1, %2 : f32
    memref.store %3, %x[%row] : memref<?xf32>
  }
  return
}
