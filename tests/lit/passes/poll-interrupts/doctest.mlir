// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-poll-interrupts %s | filecheck %s

func.func private @graphc_tick() -> i64 attributes {graphc.helper = {kind = "poll"}}

// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: func.call @graphc_tick()
func.func @main(%n: index, %x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (f64) {
    %z = arith.mulf %y, %x : f64
    %s = func.call @graphc_tick() : () -> i64
    scf.yield %z : f64
  }
  return %r : f64
}
