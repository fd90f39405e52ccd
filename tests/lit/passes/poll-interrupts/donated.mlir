// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-poll-interrupts %s | filecheck %s

// What overwrites the value of a shared variable is not interrupted; what comes before is.
// CHECK-LABEL: func.func @main(
// CHECK: scf.for
// CHECK: func.call @graphc_tick()
// CHECK: scf.for
// CHECK-NOT: graphc_tick
// CHECK: return
module attributes {graphc.donate = [{argument = 0 : i64, results = array<i64: 0>, keeps_on_failure}], graphc.donated = {kept = [], pairs = [array<i64: 0, 0>], spares = []}} {
  func.func private @graphc_tick() -> i64 attributes {graphc.helper = {kind = "poll"}}
  func.func @main(%cell: memref<?xf64>, %b: memref<?xf64>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %v = memref.load %cell[%j] : memref<?xf64>
        memref.store %v, %b[%j] : memref<?xf64>
      }
      %s = func.call @graphc_tick() : () -> i64
    }
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %v = memref.load %b[%j] : memref<?xf64>
        memref.store %v, %cell[%j] : memref<?xf64>
      }
      %s = func.call @graphc_tick() : () -> i64
    }
    return
  }
}
