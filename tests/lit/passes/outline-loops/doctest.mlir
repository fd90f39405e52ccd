// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-loops=minimum=1 %s | filecheck %s

// CHECK: func.func @exp
// CHECK: call @graphc_part_0(%arg2, %arg0, %arg1)
// CHECK-NEXT: return
// CHECK: func.func private @graphc_part_0(%arg0: index, %arg1: memref<?xf64>, %arg2: memref<?xf64>)
// CHECK-SAME: attributes {graphc.part, llvm.no_inline}
// CHECK: scf.for %{{.*}} = %{{.*}} to %arg0
func.func @exp(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    memref.store %1, %y[%i] : memref<?xf64>
  }
  return
}
