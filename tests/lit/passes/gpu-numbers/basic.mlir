// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-numbers --canonicalize --cse --split-input-file %s | filecheck %s

// What is written after the load may be the element: the host reads it before, and passes it on.
// CHECK: gpu.func @number_0(%[[A:.*]]: f32, %[[R:.*]]: memref<i8>) kernel
// CHECK-NOT: memref.load
// CHECK: func.func @overwritten
// CHECK: %[[A:.*]] = memref.load %{{.*}}[] : memref<f32>
// CHECK: linalg.fill
// CHECK: gpu.launch_func @kernels::@number_0 {{.*}} args(%[[A]] : f32
func.func @overwritten(%x: memref<f32>, %y: memref<?xf32>) {
  %limit = arith.constant 1.0 : f32
  %a = memref.load %x[] : memref<f32>
  linalg.fill ins(%limit : f32) outs(%x : memref<f32>)
  %c = arith.cmpf ogt, %a, %limit : f32
  scf.if %c {
    linalg.fill ins(%limit : f32) outs(%y : memref<?xf32>)
  }
  return
}

// -----

// One kernel for all of the arithmetic, and one number that comes back, as an index.
// CHECK: gpu.func @number_0(%[[X:.*]]: memref<?xf64>, %[[N:.*]]: index, %[[R:.*]]: memref<i64>) kernel
// CHECK: memref.load %[[X]][%[[N]]]
// CHECK: arith.mulf
// CHECK: arith.fptosi
// CHECK-NOT: gpu.func
// CHECK: func.func @size
// CHECK: gpu.launch_func @kernels::@number_0
// CHECK: %[[V:.*]] = memref.load
// CHECK: %[[I:.*]] = arith.index_cast %[[V]] : i64 to index
// CHECK: memref.alloc(%[[I]])
func.func @size(%x: memref<?xf64>, %n: index) -> memref<?xf64> {
  %a = memref.load %x[%n] : memref<?xf64>
  %b = arith.mulf %a, %a : f64
  %c = arith.fptosi %b : f64 to i64
  %d = arith.index_cast %c : i64 to index
  %e = memref.alloc(%d) : memref<?xf64>
  return %e : memref<?xf64>
}

// -----

// The host has 64 bits: narrow integers wrap on the device.
// CHECK: gpu.func @number_0(%{{.*}}: memref<i32>, %{{.*}}: memref<i32>) kernel
// CHECK: arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: func.func @narrow
// CHECK-NOT: arith.addi
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.addi %{{.*}}, %{{.*}} : i64
func.func @narrow(%x: memref<i32>) -> i64 {
  %a = memref.load %x[] : memref<i32>
  %b = arith.addi %a, %a : i32
  %c = arith.extsi %b : i32 to i64
  %d = arith.addi %c, %c : i64
  return %d : i64
}

// -----

// Index arithmetic and conditions need no device.
// CHECK-NOT: gpu.func
// CHECK: func.func @host
func.func @host(%x: memref<i8>, %n: index) -> index {
  %zero = arith.constant 0 : i8
  %a = memref.load %x[] : memref<i8>
  %c = arith.cmpi ne, %a, %zero : i8
  %m = arith.muli %n, %n : index
  %r = arith.select %c, %m, %n : index
  return %r : index
}

// -----

// Another array may be written after the load.
// CHECK: gpu.func @number_0(%[[X:.*]]: memref<f32>, %[[R:.*]]: memref<i8>) kernel
// CHECK: memref.load %[[X]][]
// CHECK: func.func @other
func.func @other(%x: memref<f32>, %y: memref<?xf32>) {
  %limit = arith.constant 1.0 : f32
  %a = memref.load %x[] : memref<f32>
  linalg.fill ins(%limit : f32) outs(%y : memref<?xf32>)
  %c = arith.cmpf ogt, %a, %limit : f32
  scf.if %c {
    linalg.fill ins(%limit : f32) outs(%y : memref<?xf32>)
  }
  return
}

// -----

// A state of a loop may be the array that is written.
// CHECK: gpu.func @number_0(%{{.*}}: f32, %{{.*}}: memref<i8>) kernel
// CHECK-NOT: memref.load
// CHECK: func.func @state
func.func @state(%x: memref<f32>, %z: memref<f32>, %y: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %limit = arith.constant 1.0 : f32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x, %t = %z) -> (memref<f32>, memref<f32>) {
    %a = memref.load %s[] : memref<f32>
    linalg.fill ins(%limit : f32) outs(%x : memref<f32>)
    %c = arith.cmpf ogt, %a, %limit : f32
    scf.if %c {
      linalg.fill ins(%limit : f32) outs(%y : memref<?xf32>)
    }
    scf.yield %t, %s : memref<f32>, memref<f32>
  }
  return
}
