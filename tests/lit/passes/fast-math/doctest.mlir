// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fast-math=level=reassoc %s | filecheck %s

// CHECK: arith.mulf %{{.*}} fastmath<reassoc,nsz,contract>
// CHECK: arith.addf %{{.*}} fastmath<reassoc,nsz,contract>
func.func @f(%x: f64, %y: f64) -> f64 {
  %0 = arith.mulf %x, %y fastmath<contract> : f64
  %1 = arith.addf %0, %y : f64
  return %1 : f64
}
