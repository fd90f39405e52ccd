// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-extreme --canonicalize --cse %s | filecheck %s

// Extremes of parts of rows, then those of rows; whether a row has elements is known from its size.
// CHECK: gpu.func @extremes_0
// CHECK: vector.load %{{.*}} : memref<?x?xf32>, vector<4xf32>
// CHECK: gpu.shuffle xor
// CHECK: gpu.func @extreme_1
// CHECK: func.func @main
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[PARTS:.*]], %c1
// CHECK: gpu.launch_func @kernels::@extremes_0 blocks in (%{{.*}}, %[[PARTS]], %c1)
// CHECK: %[[LEFT:.*]] = arith.select %[[ONE]], %c0
// CHECK: gpu.launch_func @kernels::@extreme_1 blocks in (%[[LEFT]]
// CHECK: %[[EMPTY:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: arith.extui %[[EMPTY]]
func.func private @arg_extreme(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "arg_extreme", types = ["f32", "i64"], keywords = ["smallest"], values = array<i64: 0>}}
func.func @main(%x: memref<?x?xf32>, %y: memref<?xi64>, %rows: i64, %n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<?xi64>) -> !llvm.ptr
  %2 = call @arg_extreme(%0, %1, %rows, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return %2 : i64
}
