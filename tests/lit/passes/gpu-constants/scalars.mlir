// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-constants --canonicalize --split-input-file %s | filecheck %s

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

// -----

// The number of elements of an array, as a float in memory.
// CHECK: gpu.func @scalar_0(%[[N:.*]]: index, %[[Y:.*]]: memref<f32>) kernel
// CHECK: %[[I:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[F:.*]] = arith.sitofp %[[I]] : i64 to f32
// CHECK: memref.store %[[F]], %[[Y]][]
// CHECK: func.func @main
// CHECK: %[[SIZE:.*]] = memref.dim
// CHECK: gpu.launch_func @kernels::@scalar_0
// CHECK: args(%[[SIZE]] : index, %{{.*}} : memref<f32>)
func.func @main(%x: memref<?xf32>, %y: memref<f32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %i = arith.index_cast %n : index to i64
  %f = arith.sitofp %i : i64 to f32
  memref.store %f, %y[] : memref<f32>
  return
}
