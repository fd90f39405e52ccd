// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-loops=minimum=1 --split-input-file %s | filecheck %s

// A reduction moves with the stores of its results; views of memory are made again in the part.
// CHECK-LABEL: func.func @sum
// CHECK-NOT: scf.for
// CHECK: %[[S:.*]] = memref.alloca
// CHECK: call @graphc_part_0(%arg2, %arg3, %arg0, %[[S]])
// CHECK-NEXT: %[[R:.*]] = memref.load %[[S]][]
// CHECK: func.func private @graphc_part_0(%arg0: index, %arg1: f64, %arg2: memref<?x?xf64>, %arg3: memref<f64>)
// CHECK: memref.subview %arg2
// CHECK: %[[T:.*]] = scf.for
// CHECK: memref.store %[[T]], %arg3[]
func.func @sum(%x: memref<?x?xf64>, %y: memref<f64>, %n: index, %zero: f64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = memref.subview %x[0, 0] [1, %n] [1, 1] : memref<?x?xf64> to memref<?xf64, strided<[1]>>
  %place = memref.alloca() : memref<f64>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %row[%i] : memref<?xf64, strided<[1]>>
    %1 = arith.addf %s, %0 : f64
    scf.yield %1 : f64
  }
  memref.store %sum, %place[] : memref<f64>
  %result = memref.load %place[] : memref<f64>
  memref.store %result, %y[] : memref<f64>
  return
}

// -----

// Left alone: calls, results that are used elsewhere, memory that may be that of another argument.
// CHECK-NOT: graphc_part
func.func private @f()
func.func @left(%x: memref<?xf64>, %y: memref<?xf64>, %n: index, %which: i1, %zero: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @f() : () -> ()
  }
  %either = arith.select %which, %x, %y : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    memref.store %zero, %either[%i] : memref<?xf64>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f64 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.addf %s, %0 : f64
    scf.yield %1 : f64
  }
  return %sum : f64
}

// -----

// Short functions stay as they are: there are fewer nests than the option asks for.
// CHECK-LABEL: func.func @without
// CHECK-NEXT: return
func.func @without() {
  return
}
