// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-loop-fusion %s | filecheck %s

// Subtracting each row's first element: the row is still in the cache when the second loop visits it.
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: memref.load %{{.*}}[%[[I]]]
// CHECK: scf.for
func.func @centre(%x: memref<?x?xf64>, %first: memref<?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i, %c0] : memref<?x?xf64>
    memref.store %0, %first[%i] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %f = memref.load %first[%i] : memref<?xf64>
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %x[%i, %j] : memref<?x?xf64>
      %1 = arith.subf %0, %f : f64
      memref.store %1, %x[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
