// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-select --canonicalize --cse %s | filecheck %s

// How many elements of each part are chosen, prefix sums of that, and each element to its place.
// CHECK: gpu.func @chosen_0
// CHECK: gpu.func @totals_1
// CHECK: gpu.func @running_2
// CHECK: gpu.func @select_3
// CHECK: %[[LANES:.*]] = gpu.ballot
// CHECK: math.ctpop %[[LANES]] : i32
// CHECK: memref.store %{{.*}}, %{{.*}}[%{{.*}}] : memref<?xf32>
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@chosen_0
// CHECK: gpu.launch_func @kernels::@running_2
// CHECK: gpu.launch_func @kernels::@select_3
// CHECK-NOT: call @compress
func.func private @compress(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "compress", types = ["f32", "bool", "f32"], keywords = [], values = array<i64>}}
func.func @main(%x: memref<?xf32>, %mask: memref<?xi8>, %y: memref<?xf32>, %rows: i64, %n: i64, %k: i64) {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%mask) {access = "read"} : (memref<?xi8>) -> !llvm.ptr
  %2 = "graphc.address"(%y) {access = "write"} : (memref<?xf32>) -> !llvm.ptr
  %3 = call @compress(%0, %1, %2, %rows, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
