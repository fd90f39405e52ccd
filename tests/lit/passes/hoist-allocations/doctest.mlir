// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-hoist-allocations %s | filecheck %s

func.func @loop(%x: memref<8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: memref.alloc
  // CHECK-NEXT: scf.for
  scf.for %i = %c0 to %n step %c1 {
    %row = memref.alloc() : memref<8xf64>
    %v = memref.load %x[%i] : memref<8xf64>
    memref.store %v, %row[%i] : memref<8xf64>
  }
  return
}
