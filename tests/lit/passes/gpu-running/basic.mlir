// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-running --canonicalize --cse --split-input-file %s | filecheck %s

// Lines across memory: neighbouring threads have neighbouring lines, and there are no barriers. The row
// before the first step is kept.
// CHECK: gpu.func @totals_0
// CHECK-NOT: gpu.barrier
// CHECK: gpu.func @running_1
// CHECK-NOT: gpu.barrier
// CHECK: func.func @across
// CHECK: gpu.launch_func @kernels::@totals_0
// CHECK: gpu.launch_func @kernels::@running_1
func.func private @recurrence(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) attributes {graphc.helper = {kind = "kernel", name = "recurrence", types = ["f32", "f32", "f32", "f32"], keywords = ["keep_initial", "kind", "reverse"], values = array<i64: 1, 6, 0>}}
func.func @across(%a: memref<1x?xf32>, %b: memref<?x?xf32>, %first: memref<1x?xf32>, %y: memref<?x?xf32>, %n: index) {
  %0 = "graphc.address"(%a) {access = "read"} : (memref<1x?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %2 = "graphc.address"(%first) {access = "read"} : (memref<1x?xf32>) -> !llvm.ptr
  %3 = "graphc.address"(%y) {access = "write"} : (memref<?x?xf32>) -> !llvm.ptr
  %4 = arith.index_cast %n : index to i64
  call @recurrence(%0, %1, %2, %3, %4) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  return
}

// -----

// Along the last axis of views: buffers are read as they lie. 512 lines or more have one part each.
// CHECK: gpu.func @running_1({{.*}}memref<?x?xi32, strided<[?, ?], offset: ?>>
// CHECK: func.func @along
// CHECK: %[[MANY:.*]] = arith.cmpi sge, %{{.*}}, %c512
// CHECK: arith.select %[[MANY]], %c1
// CHECK: gpu.launch_func @kernels::@running_1
func.func private @running(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "running", types = ["i32", "i32"], keywords = ["kind", "reverse"], values = array<i64: 2, 1>}}
func.func @along(%x: memref<?x?xi32, strided<[?, ?], offset: ?>>, %y: memref<?x?xi32>, %rows: i64, %n: i64) {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?x?xi32, strided<[?, ?], offset: ?>>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<?x?xi32>) -> !llvm.ptr
  %2 = call @running(%0, %1, %rows, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
