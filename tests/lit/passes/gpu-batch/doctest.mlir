// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-batch --canonicalize --cse %s | filecheck %s

// A recurrent network: one kernel runs all steps, with a row of the batch in each block and the matrix in
// registers, or with 4 rows and a matrix that is read in each step. Where that takes longer than launches, the
// loop stays. Sizes decide in the call.
// CHECK: gpu.func @recurrent_0{{.*}}minctasm = 1
// CHECK: arith.select %{{.*}}, %{{.*}}, %cst
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1
// CHECK: vector.load
// CHECK: math.tanh
// CHECK: gpu.barrier
// CHECK: gpu.func @recurrent_1
// CHECK: func.func @main
// CHECK: scf.if
// CHECK: scf.for
// CHECK: else
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK: gpu.launch_func @kernels::@recurrent_0
// CHECK: else
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c4
// CHECK: gpu.launch_func @kernels::@recurrent_1
func.func @main(%x: memref<?x?x?xf32>, %w: memref<?x?xf32>, %h: memref<?x?x?xf32>, %n: index, %batch: index, %size: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  scf.for %t = %c0 to %n step %c1 {
    %next = arith.addi %t, %c1 : index
    %before = memref.subview %h[%t, 0, 0] [1, %batch, %size] [1, 1, 1] : memref<?x?x?xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
    %after = memref.subview %h[%next, 0, 0] [1, %batch, %size] [1, 1, 1] : memref<?x?x?xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
    %sum = memref.alloc(%batch, %size) : memref<?x?xf32>
    linalg.fill ins(%zero : f32) outs(%sum : memref<?x?xf32>)
    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%before, %w : memref<?x?xf32, strided<[?, 1], offset: ?>>, memref<?x?xf32>) outs(%sum : memref<?x?xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %c, %0 : f32
      linalg.yield %1 : f32
    }
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%sum : memref<?x?xf32>) outs(%after : memref<?x?xf32, strided<[?, 1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %0 = memref.load %x[%t, %i, %j] : memref<?x?x?xf32>
      %1 = arith.addf %0, %a : f32
      %2 = math.tanh %1 : f32
      linalg.yield %2 : f32
    }
  }
  return
}
