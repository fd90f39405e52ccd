// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-settle-recurrences %s | filecheck %s

// CHECK: scf.while
// CHECK: scf.for
// CHECK: arith.bitcast
// CHECK: arith.cmpi ne
// CHECK: scf.for
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: memref.store
func.func @main(%y: memref<?xf64>, %n: index, %start: f64, %factor: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%g = %start) -> (f64) {
    %next = arith.mulf %g, %factor : f64
    memref.store %next, %y[%i] : memref<?xf64>
    scf.yield %next : f64
  }
  return %last : f64
}
