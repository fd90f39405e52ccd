// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scan --canonicalize --cse --split-input-file %s | filecheck %s

// What a step reads of arrays that the loop does not write is asked for 16 steps before, the factor once; of
// a loop without steps nothing is read.
// CHECK: #[[UNROLL:.*]] = #llvm.loop_unroll<count = 16 : i32>
// CHECK: gpu.func @steps_0
// CHECK: %[[SOME:.*]] = arith.cmpi sgt
// CHECK: %[[READ:.*]]:17 = scf.if %[[SOME]]
// CHECK: scf.for %[[T:.*]] = %c0 to %[[N:.*]] step %c1 iter_args(%[[S:.*]] = %{{.*}}, %[[NOW:.*]] = %[[READ]]#1, %[[NEXT:.*]] = %[[READ]]#2,
// CHECK: %[[LATER:.*]] = arith.addi %[[T]], %c16
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[LATER]], %[[N]]
// CHECK: %[[AT:.*]] = arith.select %[[INSIDE]], %[[LATER]], %[[T]]
// CHECK: memref.load %{{.*}}[%[[AT]], %{{.*}}]
// CHECK: %[[P:.*]] = arith.mulf %[[S]], %[[READ]]#0
// CHECK: %[[R:.*]] = arith.addf %[[P]], %[[NOW]]
// CHECK: memref.store %[[R]]
// CHECK: scf.yield %[[R]], %[[NEXT]],
// CHECK: loop_annotation
#id = affine_map<(i) -> (i)>
func.func @chains(%h: memref<?xf32>, %a: memref<?xf32>, %x: memref<?x?xf32>, %trace: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %h, %c0 : memref<?xf32>
  %first = memref.cast %h : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%s = %first) -> (memref<?xf32, strided<[1], offset: ?>>) {
    %row = memref.subview %trace[%t, 0] [1, %b] [1, 1]
        : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%s, %a : memref<?xf32, strided<[1], offset: ?>>, memref<?xf32>) outs(%row : memref<?xf32, strided<[1], offset: ?>>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %i = linalg.index 0 : index
      %e = memref.load %x[%t, %i] : memref<?x?xf32>
      %0 = arith.mulf %u, %v : f32
      %1 = arith.addf %0, %e : f32
      linalg.yield %1 : f32
    }
    scf.yield %row : memref<?xf32, strided<[1], offset: ?>>
  }
  return
}

// -----

// Of an array that the loop writes, nothing is read before its step.
// CHECK: func.func @in_place
// CHECK-NOT: arith.select
// CHECK: gpu.launch_func
#id = affine_map<(i) -> (i)>
func.func @in_place(%h: memref<?xf32>, %trace: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %h, %c0 : memref<?xf32>
  scf.for %t = %c0 to %n step %c1 {
    %row = memref.subview %trace[%t, 0] [1, %b] [1, 1]
        : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%h : memref<?xf32>) outs(%row : memref<?xf32, strided<[1], offset: ?>>) {
    ^bb0(%u: f32, %o: f32):
      %0 = arith.addf %o, %u : f32
      linalg.yield %0 : f32
    }
  }
  return
}
