// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-steps --canonicalize --split-input-file %s | filecheck %s

// A kernel computes whether there is another step, and counts; where there is none, kernels do nothing. The
// host launches several steps before it asks.
// CHECK: gpu.func @start_1
// CHECK-DAG: memref.store %c0_i64
// CHECK-DAG: memref.store %c1_i64
// CHECK: gpu.func @next_2
// CHECK: scf.if
// CHECK: arith.addi
// CHECK: arith.cmpi eq, %{{.*}}, %c0_i8
// CHECK: gpu.func @step_3(%[[N:.*]]: memref<i64>, %[[ON:.*]]: memref<i64>, {{.*}}) kernel
// CHECK: %[[F:.*]] = memref.load %[[ON]][]
// CHECK: %[[HOLDS:.*]] = arith.cmpi ne, %[[F]], %c0_i64
// CHECK: scf.if %[[HOLDS]] {
// CHECK: memref.store
// CHECK: }
// CHECK: func.func @main
// CHECK: scf.while
// CHECK: scf.condition
// CHECK: arith.maxsi %{{.*}}, %c4
// CHECK: arith.minsi %{{.*}}, %c64
// CHECK: scf.for
// CHECK-NEXT: gpu.launch_func @kernels::@step_3
// CHECK-NEXT: gpu.launch_func @kernels::@next_2
// CHECK-NEXT: }
// CHECK-NEXT: memref.load
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @step(%a: memref<4xf32>, %f: memref<i8>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %a[%i] : memref<4xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %a[%i] : memref<4xf32>
      %one = arith.constant 1 : i8
      memref.store %one, %f[] : memref<i8>
      gpu.return
    }
  }
  func.func @main(%a: memref<4xf32>, %n: index) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %yes = arith.constant true
    %zero = arith.constant 0 : i8
    %r = scf.while (%i = %c0, %go = %yes) : (index, i1) -> index {
      %below = arith.cmpi slt, %i, %n : index
      %both = arith.andi %below, %go : i1
      scf.condition(%both) %i : index
    } do {
    ^bb0(%i: index):
      %f = memref.alloc() : memref<i8>
      gpu.launch_func @kernels::@step blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<4xf32>, %f : memref<i8>)
      %v = memref.load %f[] : memref<i8>
      %stop = arith.cmpi ne, %v, %zero : i8
      %more = arith.xori %stop, %yes : i1
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %more : index, i1
    }
    return %r : index
  }
}

// -----

// The host needs the element for something else, too.
// CHECK: func.func @other
// CHECK-NOT: scf.for
// CHECK: return
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @step(%f: memref<index>) kernel {
      gpu.return
    }
  }
  func.func @other(%f: memref<index>, %n: index) -> index {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %yes = arith.constant true
    %r = scf.while (%i = %c0, %go = %yes) : (index, i1) -> index {
      %below = arith.cmpi slt, %i, %n : index
      %both = arith.andi %below, %go : i1
      scf.condition(%both) %i : index
    } do {
    ^bb0(%i: index):
      %v = memref.load %f[] : memref<index>
      gpu.launch_func @kernels::@step blocks in (%v, %c1, %c1) threads in (%c1, %c1, %c1) args(%f : memref<index>)
      %more = arith.cmpi ne, %v, %c0 : index
      %next = arith.addi %i, %c1 : index
      scf.yield %next, %more : index, i1
    }
    return %r : index
  }
}
