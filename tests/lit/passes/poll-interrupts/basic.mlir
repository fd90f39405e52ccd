// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-poll-interrupts %s | filecheck %s

func.func private @graphc_tick() -> i64 attributes {graphc.helper = {kind = "poll"}}
func.func private @graphc_progress_61(index, index) -> i64 attributes {graphc.helper = {kind = "progress", loop = "a"}}

// A loop of scalars runs in blocks; after the last block there is nothing to end.
// CHECK-LABEL: func.func @scalars(
// CHECK: scf.for %[[START:[a-z0-9]+]] = %{{.+}} to %[[N:[a-z0-9]+]] step %[[STRIDE:[a-z0-9]+]] iter_args(%[[X:[a-z0-9]+]] =
// CHECK: %[[NEXT:.+]] = arith.addi %[[START]], %[[STRIDE]]
// CHECK: %[[END:.+]] = arith.minsi %[[NEXT]], %[[N]]
// CHECK: %[[MORE:.+]] = arith.cmpi slt, %[[NEXT]], %[[N]]
// CHECK: %[[LAST:.+]] = scf.for %{{.+}} = %[[START]] to %[[END]] step %{{.+}} iter_args(%{{[a-z0-9]+}} = %[[X]])
// CHECK-NOT: graphc_tick
// CHECK: scf.if %[[MORE]] {
// CHECK-NEXT: func.call @graphc_tick()
// CHECK: scf.yield %[[LAST]]
func.func @scalars(%n: index, %x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (f64) {
    %z = arith.mulf %y, %x : f64
    %s = func.call @graphc_tick() : () -> i64
    scf.yield %z : f64
  }
  return %r : f64
}

// With a loop inside, an iteration takes longer than a tick.
// CHECK-LABEL: func.func @rows(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: func.call @graphc_tick()
// CHECK-NEXT: }
func.func @rows(%n: index, %m: index, %b: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %v = memref.load %b[%j] : memref<?xf64>
      %w = arith.addf %v, %v : f64
      memref.store %w, %b[%j] : memref<?xf64>
    }
    %s = func.call @graphc_tick() : () -> i64
  }
  return
}

// Short loops do not look.
// CHECK-LABEL: func.func @short(
// CHECK-NOT: graphc_tick
// CHECK: return
func.func @short(%x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (f64) {
    %z = arith.mulf %y, %x : f64
    %s = func.call @graphc_tick() : () -> i64
    scf.yield %z : f64
  }
  return %r : f64
}

// Progress is told after each block.
// CHECK-LABEL: func.func @progress(
// CHECK: %[[NEXT:.+]] = arith.addi
// CHECK: func.call @graphc_progress_61(%[[NEXT]], %[[N:[a-z0-9]+]])
// CHECK: call @graphc_progress_61(%[[N]], %[[N]])
func.func @progress(%n: index, %x: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (f64) {
    %z = arith.mulf %y, %x : f64
    %s = func.call @graphc_progress_61(%i, %n) : (index, index) -> i64
    scf.yield %z : f64
  }
  %e = func.call @graphc_progress_61(%n, %n) : (index, index) -> i64
  return %r : f64
}
