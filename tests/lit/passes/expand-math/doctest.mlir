// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math=keep=exp %s | filecheck %s

// asin(x) = x + x z P(z) up to a half, pi/2 - 2 asin(sqrt((1 - x)/2)) above; both are computed and a select chooses.
// `keep` leaves the exponential to libm.
// CHECK: %[[A:.*]] = math.absf %arg0 : f64
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[A]]
// CHECK: %[[Z:.*]] = arith.select %[[LARGE]]
// CHECK: math.sqrt
// CHECK-COUNT-11: math.fma
// CHECK: %[[Y:.*]] = math.copysign %{{.*}}, %arg0 : f64
// CHECK: %[[E:.*]] = math.exp %[[Y]]
// CHECK: return %[[E]]
func.func @f(%x: f64) -> f64 {
  %0 = math.asin %x : f64
  %1 = math.exp %0 : f64
  return %1 : f64
}
