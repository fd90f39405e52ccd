// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math %s | filecheck %s

// A loop over elements with such arithmetic, or with much of its own, takes the widest vectors; one that waits for the step before, a
// short one and one around another do not.
// CHECK: module attributes {graphc.wide}
// CHECK: func.func @elements(%{{.*}}, %{{.*}}: index) {
// CHECK: func.func @steps({{.*}} attributes {llvm.passthrough = {{\[\[}}"prefer-vector-width", "256"]]}
// CHECK: func.func @around({{.*}} attributes {llvm.passthrough
// CHECK: func.func @few({{.*}} attributes {llvm.passthrough
// CHECK: func.func @much(%{{.*}}, %{{.*}}: index) {
// CHECK: func.func @little({{.*}} attributes {llvm.passthrough
// CHECK: func.func private @declared(index){{$}}
func.func @elements(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = arith.constant 0.0 : f64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %sum) -> (f64) {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    %2 = arith.addf %s, %1 : f64
    scf.yield %2 : f64
  }
  memref.store %r, %x[%c0] : memref<?xf64>
  return
}
func.func @steps(%n: index, %start: f64) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> (f64) {
    %1 = math.tanh %s : f64
    scf.yield %1 : f64
  }
  return %r : f64
}
func.func @around(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    scf.for %j = %c0 to %n step %c1 {
      memref.store %1, %x[%j] : memref<?xf64>
    }
  }
  return
}
func.func @few(%x: memref<8xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = memref.load %x[%i] : memref<8xf64>
    %1 = math.exp %0 : f64
    memref.store %1, %x[%i] : memref<8xf64>
  }
  return
}
func.func @much(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.mulf %0, %0 : f64
    %2 = arith.mulf %1, %1 : f64
    %3 = arith.mulf %2, %2 : f64
    %4 = arith.mulf %3, %3 : f64
    %5 = arith.mulf %4, %4 : f64
    %6 = arith.mulf %5, %5 : f64
    %7 = arith.mulf %6, %6 : f64
    %8 = arith.mulf %7, %7 : f64
    %9 = arith.mulf %8, %8 : f64
    %10 = arith.mulf %9, %9 : f64
    %11 = arith.mulf %10, %10 : f64
    %12 = arith.mulf %11, %11 : f64
    %13 = arith.mulf %12, %12 : f64
    %14 = arith.mulf %13, %13 : f64
    %15 = arith.mulf %14, %14 : f64
    %16 = arith.mulf %15, %15 : f64
    memref.store %16, %x[%i] : memref<?xf64>
  }
  return
}
func.func @little(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.mulf %0, %0 : f64
    %2 = arith.mulf %1, %1 : f64
    %3 = arith.mulf %2, %2 : f64
    %4 = arith.mulf %3, %3 : f64
    %5 = arith.mulf %4, %4 : f64
    %6 = arith.mulf %5, %5 : f64
    %7 = arith.mulf %6, %6 : f64
    %8 = arith.mulf %7, %7 : f64
    %9 = arith.mulf %8, %8 : f64
    %10 = arith.mulf %9, %9 : f64
    %11 = arith.mulf %10, %10 : f64
    %12 = arith.mulf %11, %11 : f64
    %13 = arith.mulf %12, %12 : f64
    %14 = arith.mulf %13, %13 : f64
    %15 = arith.mulf %14, %14 : f64
    memref.store %15, %x[%i] : memref<?xf64>
  }
  return
}
func.func private @declared(index)
