// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scatter --canonicalize --cse %s | filecheck %s

// Positions are sorted with what is added; one thread adds up all that belongs to an element, in order.
// CHECK: gpu.func @tiles_0
// CHECK: gpu.func @digits_1
// CHECK: gpu.func @radix_4({{.*}} memref<3072xi32, #gpu.address_space<workgroup>>, %{{.*}} : memref<3072xf32, #gpu.address_space<workgroup>>
// CHECK: gpu.func @scatter_5
// CHECK: %[[ENDS:.*]]:2 = scf.if
// CHECK: scf.while
// CHECK: arith.cmpi slt, %[[ENDS]]#0, %[[ENDS]]#1
// CHECK: %[[OLD:.*]] = memref.load %[[X:.*]][%[[ROW:.*]]] : memref<?xf32>
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} step %c8 iter_args(%{{.*}} = %[[OLD]])
// CHECK: %[[ALL:.*]] = scf.for %{{.*}} to %[[ENDS]]#1 step %c1 iter_args(%[[S:.*]] = %[[SUM]])
// CHECK: %[[NEW:.*]] = arith.addf %[[S]], %{{.*}}
// CHECK: scf.yield %[[NEW]]
// CHECK: memref.store %[[ALL]], %[[X]][%[[ROW]]]
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@tiles_0
// CHECK: scf.for
// CHECK: gpu.launch_func @kernels::@radix_4
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
