// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-parallel-loops %s | filecheck %s

// CHECK: call @graphc_split_0(%{{.*}}, %arg2, %{{.*}}, %{{.*}}, %arg0, %arg1)
// CHECK: func.func private @graphc_body_0(%arg0: index, %arg1: index, %arg2: memref<?xf64>, %arg3: memref<?xf64>)
// CHECK: scf.for %{{.*}} = %arg0 to %arg1
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
