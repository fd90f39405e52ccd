// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-numbers --canonicalize %s | filecheck %s

// A branch that depends on an element: the kernel reads and compares it, the host reads one byte.
// CHECK: gpu.func @number_0(%[[X:.*]]: memref<f32>, %[[R:.*]]: memref<i8>) kernel
// CHECK: %[[A:.*]] = memref.load %[[X]][] : memref<f32>
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[A]], %{{.*}} : f32
// CHECK: %[[B:.*]] = arith.extui %[[C]] : i1 to i8
// CHECK: memref.store %[[B]], %[[R]][]
// CHECK: func.func @main(%[[X:.*]]: memref<f32>
// CHECK-NOT: arith.cmpf
// CHECK: %[[R:.*]] = memref.alloc() : memref<i8>
// CHECK: gpu.launch_func @kernels::@number_0 {{.*}} args(%[[X]] : memref<f32>, %[[R]] : memref<i8>)
// CHECK: %[[V:.*]] = memref.load %[[R]][]
// CHECK: %[[N:.*]] = arith.cmpi ne, %[[V]], %{{.*}} : i8
// CHECK: scf.if %[[N]]
func.func @main(%x: memref<f32>, %y: memref<?xf32>) {
  %limit = arith.constant 1.0 : f32
  %a = memref.load %x[] : memref<f32>
  %c = arith.cmpf ogt, %a, %limit : f32
  scf.if %c {
    linalg.fill ins(%limit : f32) outs(%y : memref<?xf32>)
  }
  return
}
