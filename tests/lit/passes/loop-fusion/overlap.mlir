// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-loop-fusion %s | filecheck %s
// RUN: graphc-opt --graphc-loop-fusion=overlap=32768 %s | filecheck %s
// RUN: graphc-opt --graphc-loop-fusion=overlap=32767 %s | filecheck %s --check-prefix=TIGHT

// Where memory is scarce: t is read last in the nest before the one that writes u first, so that both need memory
// at once only if the nests are one. Each has 32768 bytes.
// CHECK-COUNT-3: scf.for
// CHECK-NOT: scf.for
// TIGHT-LABEL: @apart
// TIGHT-COUNT-4: scf.for
func.func @apart(%x: memref<64x64xf64>, %y: memref<64x64xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = memref.alloc() : memref<64x64xf64>
  %u = memref.alloc() : memref<64x64xf64>
  memref.copy %x, %t : memref<64x64xf64> to memref<64x64xf64>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %t[%i, %j] : memref<64x64xf64>
      memref.store %0, %y[%i, %j] : memref<64x64xf64>
    }
  }
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %0 = memref.load %y[%i, %j] : memref<64x64xf64>
      memref.store %0, %u[%i, %j] : memref<64x64xf64>
    }
  }
  memref.copy %u, %x : memref<64x64xf64> to memref<64x64xf64>
  return
}
