// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-sort --canonicalize --cse --split-input-file %s | filecheck %s

// Positions of numbers of 64 bits: keys and positions, which decide where keys are equal.
// CHECK: gpu.func @sort_0({{.*}} workgroup(%[[K:.*]] : memref<1024xi64, #gpu.address_space<workgroup>>, %[[P:.*]] : memref<1024xi32, #gpu.address_space<workgroup>>)
// CHECK: arith.cmpi ugt, %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi ugt, %{{.*}}, %{{.*}} : i32
// CHECK: func.func @positions
// CHECK: "graphc.check"(%{{.*}}, %{{.*}}, %c2147483648) {error = "ValueError", message = "argsort: a row has {given} elements, and a device sorts fewer than {expected}
func.func private @argsort(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "argsort", types = ["f64", "i64"], keywords = [], values = array<i64>}}
func.func @positions(%x: memref<?xf64>, %y: memref<?xi64>, %memory: memref<?xi8>, %n: i64) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<?xi64>) -> !llvm.ptr
  %2 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %3 = call @argsort(%0, %1, %2, %one, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}

// -----

// Rows whose length is known to be short: one kernel is all.
// CHECK: func.func @short
// CHECK-NOT: graphc.check
// CHECK: gpu.launch_func @kernels::@sort_0 blocks in (%c7, %c1, %c1) threads in (%c32, %c1, %c1)
// CHECK-NOT: gpu.launch_func
func.func private @sort(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "sort", types = ["i8", "i8"], keywords = [], values = array<i64>}}
func.func @short(%x: memref<7x20xi8>, %y: memref<7x20xi8>, %memory: memref<?xi8>) {
  %n = arith.constant 20 : i64
  %rows = arith.constant 7 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<7x20xi8>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<7x20xi8>) -> !llvm.ptr
  %2 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %3 = call @sort(%0, %1, %2, %rows, %n, %n, %n) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
