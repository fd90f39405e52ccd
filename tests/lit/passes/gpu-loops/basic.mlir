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

// The number that a recurrence gives goes through an array; the poll goes.
// CHECK: gpu.func @loop_0({{.*}}, %[[A:.*]]: memref<f64>) kernel
// CHECK: %[[S:.*]] = scf.for
// CHECK-NOT: func.call
// CHECK: memref.store %[[S]], %[[A]][]
// CHECK: func.func @recurrence
// CHECK: %[[R:.*]] = memref.alloc() : memref<f64>
// CHECK: gpu.launch_func
// CHECK: memref.load %[[R]][]
func.func private @graphc_tick() -> i64 attributes {graphc.helper = {kind = "poll"}}
func.func @recurrence(%x: memref<?xf64>, %n: index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %one) -> (f64) {
    %a = memref.load %x[%i] : memref<?xf64>
    %b = arith.mulf %s, %a : f64
    %t = func.call @graphc_tick() : () -> i64
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
