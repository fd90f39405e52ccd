// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-steps --split-input-file %s | filecheck %s

// States that take turns: one is chosen by whether the number of the step is even. What comes after the loop
// knows the number of steps. The temporary array is allocated once.
// CHECK-NOT: gpu.func @step(
// CHECK: gpu.func @step_4(%[[N:.*]]: memref<i64>, %[[A:.*]]: memref<4xf32>, %[[B:.*]]: memref<4xf32>, %[[T:.*]]: memref<4xf32>) kernel
// CHECK: %[[TURN:.*]] = arith.remsi
// CHECK: %[[EVEN:.*]] = arith.cmpi eq, %[[TURN]], %c0
// CHECK: %[[OLD:.*]] = arith.select %[[EVEN]], %[[A]], %[[B]] : memref<4xf32>
// CHECK: func.func @turns
// CHECK: memref.alloc() : memref<4xf32>
// CHECK: %[[LAST:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : memref<4xf32>
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK-NOT: memref.alloc
// CHECK: }
// CHECK: gpu.launch_func @kernels::@last {{.*}} args(%[[LAST]] : memref<4xf32>)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @step(%a: memref<4xf32>, %t: memref<4xf32>, %b: memref<4xf32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %a[%i] : memref<4xf32>
      memref.store %x, %t[%i] : memref<4xf32>
      memref.store %x, %b[%i] : memref<4xf32>
      gpu.return
    }
    gpu.func @last(%a: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @turns(%x: memref<4xf32>, %y: memref<4xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (memref<4xf32>, memref<4xf32>) {
      %t = memref.alloc() : memref<4xf32>
      gpu.launch_func @kernels::@step blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<4xf32>, %t : memref<4xf32>, %b : memref<4xf32>)
      scf.yield %b, %a : memref<4xf32>, memref<4xf32>
    }
    gpu.launch_func @kernels::@last blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%r#0 : memref<4xf32>)
    return
  }
}

// -----

// Grids that differ, values that are read, and arrays that are handed on keep a loop as it is.
// CHECK: func.func @grid
// CHECK: gpu.launch_func @kernels::@any blocks in (%arg1
// CHECK: func.func @read
// CHECK: memref.load
// CHECK: func.func @fresh
// CHECK: iter_args
// CHECK: memref.alloc
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @any(%a: memref<4xf32>) kernel {
      gpu.return
    }
    gpu.func @more(%a: memref<4xf32>) kernel {
      gpu.return
    }
    gpu.func @new(%a: memref<4xf32>, %b: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @grid(%x: memref<4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      gpu.launch_func @kernels::@any blocks in (%i, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
    }
    return
  }
  func.func @read(%x: memref<4xf32>, %p: memref<4xindex>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      %k = memref.load %p[%i] : memref<4xindex>
      gpu.launch_func @kernels::@more blocks in (%k, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
    }
    return
  }
  func.func @fresh(%x: memref<4xf32>) -> memref<4xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (memref<4xf32>) {
      %b = memref.alloc() : memref<4xf32>
      gpu.launch_func @kernels::@new blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%a : memref<4xf32>, %b : memref<4xf32>)
      scf.yield %b : memref<4xf32>
    }
    return %r : memref<4xf32>
  }
}

// -----

// A kernel that something else launches, too, stays for that.
// CHECK: gpu.func @fill(%{{.*}}: memref<4xf32, strided<[1], offset: ?>>) workgroup(%{{.*}} : memref<8xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel
// CHECK: gpu.func @fill_3(%{{.*}}: memref<i64>, %{{.*}}: memref<?x4xf32>) workgroup(%{{.*}} : memref<8xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel attributes {nvvm.maxntid = array<i32: 4, 1, 1>}
// CHECK: func.func @twice
// CHECK: gpu.launch_func @kernels::@fill_3
// CHECK: }
// CHECK: gpu.launch_func @kernels::@fill blocks
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fill(%r: memref<4xf32, strided<[1], offset: ?>>) workgroup(%s: memref<8xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel attributes {nvvm.maxntid = array<i32: 4, 1, 1>} {
      %i = gpu.thread_id x
      %x = memref.load %s[%i] : memref<8xf32, #gpu.address_space<workgroup>>
      memref.store %x, %r[%i] : memref<4xf32, strided<[1], offset: ?>>
      gpu.return
    }
  }
  func.func @twice(%x: memref<?x4xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %n step %c1 {
      %r = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%r : memref<4xf32, strided<[1], offset: ?>>)
    }
    %last = memref.subview %x[%c0, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%last : memref<4xf32, strided<[1], offset: ?>>)
    return
  }
}
