// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math %s | filecheck %s

// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.exp
// CHECK: math.fma
// CHECK: arith.bitcast %{{.*}} : f64 to i64
// CHECK: arith.shrui
// CHECK: arith.shli
// CHECK-NOT: fastmath
func.func @exp(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = math.exp %a : f64
    memref.store %b, %y[%i] : memref<?xf64>
  }
  return
}

// float32 has other constants, float16 is computed in float32.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @narrow(%a: f32, %b: f16) -> (f32, f16) {
  %0 = math.log %a : f32
  %1 = math.tanh %b : f16
  return %0, %1 : f32, f16
}

// CHECK-LABEL: func.func @vectors
// CHECK: arith.constant dense<
// CHECK: arith.cmpf olt, %{{.*}} : vector<8xf64>
// CHECK: arith.bitcast %{{.*}} : vector<8xf64> to vector<8xi64>
func.func @vectors(%a: vector<8xf64>) -> vector<8xf64> {
  %0 = math.tanh %a : vector<8xf64>
  return %0 : vector<8xf64>
}

// No expansion: these stay, and so does what is no elementary function.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT: math.powf
// CHECK-NEXT: math.cbrt
// CHECK-NEXT: math.floor
// CHECK-NEXT: return
func.func @calls(%a: f64) -> (f64, f64, f64) {
  %0 = math.powf %a, %a : f64
  %1 = math.cbrt %a : f64
  %2 = math.floor %a : f64
  return %0, %1, %2 : f64, f64, f64
}
