// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-sort --canonicalize --cse %s | filecheck %s

// Short rows are sorted by one kernel, of which there are two; long ones by digits, three or four launches
// each, of which the last one writes numbers.
// CHECK: gpu.func @sort_0({{.*}} workgroup(%{{.*}} : memref<1024xi32, #gpu.address_space<workgroup>>)
// CHECK: math.ctlz
// CHECK: gpu.barrier
// CHECK: gpu.func @tiles_1
// CHECK: gpu.func @digits_2
// CHECK: memref.atomic_rmw addi {{.*}} memref<256xi32, #gpu.address_space<workgroup>>
// CHECK: gpu.func @totals_3
// CHECK: gpu.func @running_4
// CHECK: gpu.func @radix_5
// CHECK: gpu.ballot
// CHECK: gpu.barrier scope <subgroup>
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@sort_0
// CHECK: gpu.launch_func @kernels::@digits_2
// CHECK: gpu.launch_func @kernels::@running_4
// CHECK: gpu.launch_func @kernels::@radix_5
// CHECK-COUNT-3: gpu.launch_func @kernels::@radix_5
// CHECK-NOT: call @sort
func.func private @sort(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "sort", types = ["f32", "f32"], keywords = [], values = array<i64>}}
func.func @main(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %memory: memref<?xi8>, %rows: i64, %n: i64) {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<?x?xf32>) -> !llvm.ptr
  %2 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %3 = call @sort(%0, %1, %2, %rows, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
