// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-functions %s | filecheck %s

// The sine of a float32 is that of a float64, rounded.
// CHECK: llvm.func @graphc_scalar.sin(f64) -> f64
// CHECK: gpu.func @waves
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f32 to f64
// CHECK: %[[SINE:.*]] = llvm.call @graphc_scalar.sin(%[[WIDE]]) : (f64) -> f64
// CHECK: arith.truncf %[[SINE]] : f64 to f32
gpu.module @kernels {
  gpu.func @waves(%x: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %a = memref.load %x[%i] : memref<?xf32>
    %s = math.sin %a : f32
    memref.store %s, %x[%i] : memref<?xf32>
    gpu.return
  }
}
