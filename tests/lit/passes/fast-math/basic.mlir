// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fast-math=level=off %s | filecheck %s

// Sums of reductions keep their flags; comparisons, integers and functions have none.
// CHECK-LABEL: func.func @off
// CHECK-NEXT: arith.mulf %arg0, %arg1 : f64
// CHECK-NEXT: arith.addf %{{.*}} fastmath<reassoc,contract>
// CHECK-NEXT: arith.cmpf olt, %{{.*}}, %arg0 : f64
// CHECK-NEXT: math.exp %{{.*}} : f64
module {
  func.func @off(%x: f64, %y: f64) -> (i1, f64) {
    %0 = arith.mulf %x, %y fastmath<contract> : f64
    %1 = arith.addf %0, %y fastmath<reassoc,contract> : f64
    %2 = arith.cmpf olt, %1, %x : f64
    %3 = math.exp %1 : f64
    return %2, %3 : i1, f64
  }
}
