// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-constants %s | filecheck %s

// Two numbers of the program are written by a kernel.
// CHECK-NOT: memref.global
// CHECK: gpu.func @literal_0(%[[Y:.*]]: memref<2xf64>) kernel
// CHECK: %[[A:.*]] = arith.constant 1.5{{.*}} : f64
// CHECK: memref.store %[[A]], %[[Y]][%{{.*}}]
// CHECK: %[[B:.*]] = arith.constant -2.0{{.*}} : f64
// CHECK: memref.store %[[B]], %[[Y]][%{{.*}}]
// CHECK: func.func @main
// CHECK: %[[X:.*]] = memref.alloc() : memref<2xf64>
// CHECK: gpu.launch_func @kernels::@literal_0
// CHECK: memref.copy %[[X]]
memref.global "private" constant @numbers : memref<2xf64> = dense<[1.5, -2.0]>
func.func @main(%y: memref<2xf64>) {
  %x = memref.get_global @numbers : memref<2xf64>
  memref.copy %x, %y : memref<2xf64> to memref<2xf64>
  return
}
