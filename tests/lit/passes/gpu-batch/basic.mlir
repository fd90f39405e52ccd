// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-batch --canonicalize --cse --split-input-file %s | filecheck %s

// Windows take turns, the matrix lies across, and the last state is read after the loop. Where that is a
// kernel, the matrix is turned first, and blocks write their rows of the last state; where it stays a loop, the
// last state is copied. A matrix of float64 is not kept: there is no such kernel.
// CHECK: gpu.func @recurrent_0
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.yield
// CHECK-NOT: gpu.func
// CHECK: func.func @windows
// CHECK: %[[LAST:.*]] = memref.alloc
// CHECK: scf.if
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: linalg.generic {{.*}} ins(%[[LOOP]]#0 {{.*}} outs(%[[LAST]]
// CHECK: else
// CHECK: %[[TURNED:.*]] = memref.alloc
// CHECK: linalg.generic {{.*}} ins(%{{.*}}) outs(%[[TURNED]]
// CHECK: gpu.launch_func @kernels::@recurrent_0
// CHECK: memref.copy %[[LAST]]
func.func @windows(%w: memref<?x?xf64>, %s: memref<2x?x?xf64>, %y: memref<?x?xf64>, %n: index, %batch: index, %size: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %0 = memref.subview %s[0, 0, 0] [1, %batch, %size] [1, 1, 1] : memref<2x?x?xf64> to memref<?x?xf64, strided<[?, 1]>>
  %1 = memref.cast %0 : memref<?x?xf64, strided<[?, 1]>> to memref<?x?xf64, strided<[?, 1], offset: ?>>
  %2 = memref.subview %s[1, 0, 0] [1, %batch, %size] [1, 1, 1] : memref<2x?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
  %3:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = %1, %q = %2) -> (memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64, strided<[?, 1], offset: ?>>) {
    linalg.fill ins(%zero : f64) outs(%q : memref<?x?xf64, strided<[?, 1], offset: ?>>)
    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %w : memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64>) outs(%q : memref<?x?xf64, strided<[?, 1], offset: ?>>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %ab = arith.mulf %a, %b : f64
      %sum = arith.addf %c, %ab : f64
      linalg.yield %sum : f64
    }
    scf.yield %q, %p : memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64, strided<[?, 1], offset: ?>>
  }
  memref.copy %3#0, %y : memref<?x?xf64, strided<[?, 1], offset: ?>> to memref<?x?xf64>
  return
}

// -----

// A step that reads other rows of the state is no work on rows.
// CHECK-NOT: gpu.func
// CHECK: func.func @mixed
// CHECK: scf.for
func.func @mixed(%w: memref<?x?xf64>, %s: memref<?x?x?xf64>, %n: index, %size: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %next = arith.addi %t, %c1 : index
    %p = memref.subview %s[%t, 0, 0] [1, %size, %size] [1, 1, 1] : memref<?x?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
    %q = memref.subview %s[%next, 0, 0] [1, %size, %size] [1, 1, 1] : memref<?x?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %w : memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64>) outs(%q : memref<?x?xf64, strided<[?, 1], offset: ?>>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %ab = arith.mulf %a, %b : f64
      %sum = arith.addf %c, %ab : f64
      linalg.yield %sum : f64
    }
  }
  return
}

// -----

// So is one whose rows are moved by one between what is read and what is written.
// CHECK-NOT: gpu.func
// CHECK: func.func @shifted
// CHECK: scf.for
func.func @shifted(%w: memref<?x?xf64>, %s: memref<?x?xf64>, %n: index, %rows: index, %size: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %p = memref.subview %s[1, 0] [%rows, %size] [1, 1] : memref<?x?xf64> to memref<?x?xf64, strided<[?, 1], offset: ?>>
    %q = memref.subview %s[0, 0] [%rows, %size] [1, 1] : memref<?x?xf64> to memref<?x?xf64, strided<[?, 1]>>
    linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%p, %w : memref<?x?xf64, strided<[?, 1], offset: ?>>, memref<?x?xf64>) outs(%q : memref<?x?xf64, strided<[?, 1]>>) {
    ^bb0(%a: f64, %b: f64, %c: f64):
      %ab = arith.mulf %a, %b : f64
      %sum = arith.addf %c, %ab : f64
      linalg.yield %sum : f64
    }
  }
  return
}
