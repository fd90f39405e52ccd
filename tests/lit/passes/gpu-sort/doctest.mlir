// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-sort --canonicalize --cse %s | filecheck %s

// Short rows are sorted by one kernel; long ones in tiles, which a loop of the host merges.
// CHECK: gpu.func @sort_0({{.*}} workgroup(%{{.*}} : memref<4096xi32, #gpu.address_space<workgroup>>)
// CHECK: math.ctlz
// CHECK: gpu.barrier
// CHECK: gpu.func @tiles_1
// CHECK: gpu.func @merge_2
// CHECK: gpu.func @sorted_3
// CHECK: func.func @main
// CHECK: gpu.launch_func @kernels::@sort_0
// CHECK: gpu.launch_func @kernels::@tiles_1
// CHECK: %[[END:.*]]:2 = scf.while
// CHECK: gpu.launch_func @kernels::@merge_2
// CHECK: gpu.launch_func @kernels::@sorted_3 {{.*}}%[[END]]#1
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
