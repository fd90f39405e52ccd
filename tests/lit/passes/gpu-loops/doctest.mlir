// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-loops --canonicalize --cse %s | filecheck %s

// Iterations that write places of their own are shared by threads.
// CHECK: gpu.func @loop_0
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: func.func @main
// CHECK-NOT: scf.for
// CHECK: gpu.launch_func @kernels::@loop_0 {{.*}} threads in (%c128, %c1, %c1)
func.func @main(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.addf %a, %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
  }
  return
}
