// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scalars --canonicalize --split-input-file %s | filecheck %s

// A value that is used twice is computed once; what was loaded is an argument.
// CHECK: gpu.func @scalar_0(%[[A:.*]]: f32, %[[Y:.*]]: memref<f32>) kernel
// CHECK: %[[S:.*]] = arith.mulf %[[A]], %[[A]]
// CHECK-NOT: arith.mulf
// CHECK: arith.addf %[[S]], %[[S]]
// CHECK: func.func @loaded
// CHECK: memref.load
// CHECK-NOT: arith.addf
func.func @loaded(%x: memref<f32>, %y: memref<f32>) {
  %a = memref.load %x[] : memref<f32>
  %s = arith.mulf %a, %a : f32
  %d = arith.addf %s, %s : f32
  memref.store %d, %y[] : memref<f32>
  return
}

// -----

// In a branch, and with a place among many.
// CHECK: gpu.func @scalar_0(%[[Y:.*]]: memref<?xf32>, %[[I:.*]]: index) kernel
// CHECK: memref.store %cst, %[[Y]][%[[I]]]
// CHECK: scf.if
// CHECK: gpu.launch_func
func.func @branch(%y: memref<?xf32>, %i: index, %c: i1) {
  %one = arith.constant 1.0 : f32
  scf.if %c {
    memref.store %one, %y[%i] : memref<?xf32>
  }
  return
}
