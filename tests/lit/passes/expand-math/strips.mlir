// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math %s --split-input-file | filecheck %s

// What is computed goes to the stack, side by side, and from there to a column.
// CHECK-LABEL: @column
// CHECK: %[[STRIP:.*]] = memref.alloca() : memref<256xf64>
// CHECK: scf.for %[[FIRST:.*]] = %arg2 to %arg3 step %c256
// CHECK: %[[LEFT:.*]] = arith.subi %arg3, %[[FIRST]]
// CHECK: %[[COUNT:.*]] = arith.minsi %[[LEFT]]
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: %[[AT:.*]] = arith.addi %[[FIRST]], %[[I]]
// CHECK: memref.load %arg0[%[[AT]]]
// CHECK: memref.store %{{.*}}, %[[STRIP]][%[[I]]]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: %[[TO:.*]] = arith.addi %[[FIRST]], %[[J]]
// CHECK: %[[V:.*]] = memref.load %[[STRIP]][%[[J]]]
// CHECK: memref.store %[[V]], %arg1[%[[TO]]]
func.func @column(%x: memref<?xf64>, %y: memref<?xf64, strided<[?]>>, %from: index, %to: index) {
  %c1 = arith.constant 1 : index
  scf.for %i = %from to %to step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    memref.store %1, %y[%i] : memref<?xf64, strided<[?]>>
  } {graphc.apart}
  return
}

// -----

// Cheap arithmetic is stored where it belongs; so are few elements, and what nobody calls independent.
// CHECK-LABEL: @as_it_is
// CHECK-NOT: memref.alloca
func.func @as_it_is(%x: memref<?xf64>, %y: memref<?xf64, strided<[?]>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.addf %0, %0 : f64
    memref.store %1, %y[%i] : memref<?xf64, strided<[?]>>
  } {graphc.apart}
  scf.for %i = %c0 to %c4 step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    memref.store %1, %y[%i] : memref<?xf64, strided<[?]>>
  } {graphc.apart}
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    memref.store %1, %y[%i] : memref<?xf64, strided<[?]>>
  }
  return
}
