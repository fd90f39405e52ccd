// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-functions --split-input-file %s | filecheck %s

// Functions of two numbers, and each declaration once.
// CHECK-LABEL: gpu.module @powers
// CHECK-COUNT-1: llvm.func @graphc_scalar.pow(f64, f64) -> f64
// CHECK-NOT: llvm.func
// CHECK: llvm.call @graphc_scalar.pow(%[[X:.*]], %[[Y:.*]])
// CHECK: %[[N:.*]] = arith.sitofp %{{.*}} : i32 to f64
// CHECK: llvm.call @graphc_scalar.pow(%{{.*}}, %[[N]])
gpu.module @powers {
  gpu.func @powers(%z: memref<2xf64>, %x: f64, %y: f64, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %p = math.powf %x, %y : f64
    %q = math.fpowi %x, %n : f64, i32
    memref.store %p, %z[%c0] : memref<2xf64>
    memref.store %q, %z[%c1] : memref<2xf64>
    gpu.return
  }
}

// -----

// Remainders, reciprocal roots; what is an instruction stays.
// CHECK-LABEL: gpu.module @others
// CHECK: llvm.func @graphc_scalar.fmod(f64, f64) -> f64
// CHECK: llvm.call @graphc_scalar.fmod
// CHECK: %[[ROOT:.*]] = math.sqrt
// CHECK: arith.divf %{{.*}}, %[[ROOT]] : f32
// CHECK: math.floor
gpu.module @others {
  gpu.func @others(%z: memref<3xf32>, %x: f32, %y: f32) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %p = arith.remf %x, %y : f32
    %q = math.rsqrt %x : f32
    %r = math.floor %x : f32
    memref.store %p, %z[%c0] : memref<3xf32>
    memref.store %q, %z[%c1] : memref<3xf32>
    memref.store %r, %z[%c2] : memref<3xf32>
    gpu.return
  }
}

// -----

// Calls that lowering has made are of the llvm dialect from here on, and so is what they call. Functions of
// the host are left alone.
// CHECK: func.func @host
// CHECK: call @graphc_scalar.zeta
// CHECK: gpu.module @called
// CHECK: llvm.func @graphc_scalar.zeta(f64, f64) -> f64
// CHECK-NOT: func.func
// CHECK: llvm.call @graphc_scalar.zeta
func.func private @graphc_scalar.zeta(f64, f64) -> f64
func.func @host(%x: f64) -> f64 {
  %z = func.call @graphc_scalar.zeta(%x, %x) : (f64, f64) -> f64
  return %z : f64
}
gpu.module @called {
  func.func private @graphc_scalar.zeta(f64, f64) -> f64
  gpu.func @zeta(%z: memref<f64>, %x: f64) kernel {
    %p = func.call @graphc_scalar.zeta(%x, %x) : (f64, f64) -> f64
    memref.store %p, %z[] : memref<f64>
    gpu.return
  }
}
