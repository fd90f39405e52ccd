// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-loops --canonicalize --cse --split-input-file %s | filecheck %s

// Indices may repeat: one thread, in order.
// CHECK: gpu.func @loop_0
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1
// CHECK: gpu.launch_func @kernels::@loop_0 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
func.func @scatter(%x: memref<?xf64>, %p: memref<?xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    %j = memref.load %p[%i] : memref<?xindex>
    %a = memref.load %x[%j] : memref<?xf64>
    %b = arith.addf %a, %one : f64
    memref.store %b, %x[%j] : memref<?xf64>
  }
  return
}

// -----

// Every second element, from the last one on: a grid of threads.
// CHECK: func.func @strided
// CHECK: gpu.launch_func @kernels::@loop_0 blocks in (%{{.*}}, %c1, %c1) threads in (%c128, %c1, %c1)
func.func @strided(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %y[%i] : memref<?xf64>
    %1 = arith.muli %i, %c2 : index
    %2 = arith.subi %n, %1 : index
    memref.store %0, %x[%2] : memref<?xf64>
  }
  return
}

// -----

// The number that a recurrence gives goes through an array.
// CHECK: gpu.func @loop_0({{.*}}, %[[A:.*]]: memref<f64>) kernel
// CHECK: %[[S:.*]] = scf.for
// CHECK: memref.store %[[S]], %[[A]][]
// CHECK: func.func @recurrence
// CHECK: %[[R:.*]] = memref.alloc() : memref<f64>
// CHECK: gpu.launch_func
// CHECK: memref.load %[[R]][]
func.func @recurrence(%x: memref<?xf64>, %n: index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %one) -> (f64) {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %s, %a : f64
    scf.yield %b : f64
  }
  return %r : f64
}

// -----

// Loops of nests stay, and what is inside is looked at.
// CHECK: gpu.func @loop_0
// CHECK: func.func @mixed
// CHECK: scf.for
// CHECK: linalg.fill
// CHECK: gpu.launch_func
func.func @mixed(%x: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    linalg.fill ins(%one : f64) outs(%x : memref<?xf64>)
    scf.for %j = %c0 to %n step %c1 {
      memref.store %one, %x[%j] : memref<?xf64>
    }
  }
  return
}

// -----

// A loop that ends when its own number says so: the condition is where the number is.
// CHECK: gpu.func @loop_0({{.*}}) kernel
// CHECK: scf.while
// CHECK: arith.cmpf
// CHECK: scf.condition
// CHECK: func.func @until
// CHECK-NOT: scf.while
// CHECK: gpu.launch_func @kernels::@loop_0
// CHECK: memref.load
func.func @until(%n: index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %limit = arith.constant 100.0 : f64
  %r:2 = scf.while (%i = %c0, %s = %one) : (index, f64) -> (index, f64) {
    %small = arith.cmpf olt, %s, %limit : f64
    %more = arith.cmpi slt, %i, %n : index
    %both = arith.andi %small, %more : i1
    scf.condition(%both) %i, %s : index, f64
  } do {
  ^bb0(%i: index, %s: f64):
    %next = arith.addi %i, %c1 : index
    %twice = arith.addf %s, %s : f64
    scf.yield %next, %twice : index, f64
  }
  return %r#1 : f64
}

// -----

// Index arithmetic that needs no array is the host's.
// CHECK-NOT: gpu.func
// CHECK: scf.while
func.func @power(%n: index) -> index {
  %c1 = arith.constant 1 : index
  %r = scf.while (%i = %c1) : (index) -> (index) {
    %more = arith.cmpi slt, %i, %n : index
    scf.condition(%more) %i : index
  } do {
  ^bb0(%i: index):
    %next = arith.addi %i, %i : index
    scf.yield %next : index
  }
  return %r : index
}
