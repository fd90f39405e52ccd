// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-extreme --split-input-file %s | graphc-opt --graphc-gpu-parts --graphc-gpu-rows --canonicalize --cse --split-input-file | filecheck %s

// The smallest of signed integers: one row has parts of its own, and a kernel combines elements and positions.
// CHECK: gpu.func @whole_0
// CHECK: vector.load %{{.*}} : memref<?xi8>, vector<16xi8>
// CHECK: arith.cmpi slt, %{{.*}} : i8
// CHECK: gpu.barrier
// CHECK: gpu.func @rows_1
// CHECK: arith.cmpi slt, %{{.*}} : i8
// CHECK: arith.cmpi ult, %{{.*}} : i64
// CHECK: func.func @smallest
// CHECK-NOT: linalg
// CHECK: gpu.launch_func @kernels::@whole_0
// CHECK: gpu.launch_func @kernels::@rows_1
func.func private @arg_extreme(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "arg_extreme", types = ["i8", "i64"], keywords = ["smallest"], values = array<i64: 1>}}
func.func @smallest(%x: memref<?xi8>, %y: memref<i64>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?xi8>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<i64>) -> !llvm.ptr
  %2 = call @arg_extreme(%0, %1, %one, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}

// -----

// Rows of bytes without sign; known to be many and short, they have one kernel.
// CHECK: gpu.func @rows_0
// CHECK: arith.cmpi ugt, %{{.*}} : i8
// CHECK: func.func @many
// CHECK-NOT: linalg
// CHECK: gpu.launch_func @kernels::@rows_0
// CHECK-NOT: gpu.launch_func
func.func private @arg_extreme(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "arg_extreme", types = ["u8", "i64"], keywords = ["smallest"], values = array<i64: 0>}}
func.func @many(%x: memref<1000x64xi8>, %y: memref<1000xi64>, %rows: i64, %n: i64) {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<1000x64xi8>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<1000xi64>) -> !llvm.ptr
  %2 = call @arg_extreme(%0, %1, %rows, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}

// -----

// In a loop nothing is allocated.
// CHECK: gpu.func @rows_0
// CHECK: func.func @loop
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK-NOT: memref.alloc
// CHECK: gpu.launch_func @kernels::@rows_0
func.func private @arg_extreme(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "arg_extreme", types = ["f64", "i64"], keywords = ["smallest"], values = array<i64: 0>}}
func.func @loop(%x: memref<?x?xf64>, %y: memref<?xi64>, %rows: i64, %n: i64, %steps: index) {
  %zero = arith.constant 0 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %steps step %c1 {
    %0 = "graphc.address"(%x) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
    %1 = "graphc.address"(%y) {access = "write"} : (memref<?xi64>) -> !llvm.ptr
    %2 = func.call @arg_extreme(%0, %1, %rows, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  }
  return
}
