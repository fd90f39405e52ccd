// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scalars --canonicalize %s | filecheck %s

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
