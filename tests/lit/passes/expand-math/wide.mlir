// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math %s | filecheck %s

// A loop over elements with such arithmetic takes the widest vectors; one that waits for the step before, a
// short one and one around another do not.
// CHECK: module attributes {graphc.wide}
// CHECK: func.func @elements(%{{.*}}, %{{.*}}: index) {
// CHECK: func.func @steps({{.*}} attributes {llvm.passthrough = {{\[\[}}"prefer-vector-width", "256"]]}
// CHECK: func.func @around({{.*}} attributes {llvm.passthrough
// CHECK: func.func @few({{.*}} attributes {llvm.passthrough
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
func.func private @declared(index)
