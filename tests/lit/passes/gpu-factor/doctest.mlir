// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-factor --canonicalize --cse %s | filecheck %s

// Matrices of up to 32 by 32 are factored by one warp each, larger ones by a block; the host reads whether
// one of them has no factor.
// CHECK: gpu.func @cholesky_small_0({{.*}} workgroup(%{{.*}} : memref<32x33xf64, #gpu.address_space<workgroup>>)
// CHECK: math.sqrt
// CHECK: gpu.barrier
// CHECK: gpu.func @cholesky_1
// CHECK: func.func @main
// CHECK: %[[NOTED:.*]] = memref.alloc(%{{.*}}) : memref<?xi64>
// CHECK: gpu.launch_func @kernels::@cholesky_small_0 {{.*}} threads in (%c32, %c1, %c1)
// CHECK: gpu.launch_func @kernels::@cholesky_1
// CHECK: linalg.generic {{.*}} ins(%[[NOTED]]
// CHECK: %[[STATUS:.*]] = memref.load
// CHECK: return %[[STATUS]]
func.func private @cholesky(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "cholesky", types = ["f64", "f64"], keywords = ["check", "lower"], values = array<i64: 1, 1>}}
func.func @main(%a: memref<?x?x?xf64>, %l: memref<?x?x?xf64>, %count: i64, %n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?x?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%l) {access = "write"} : (memref<?x?x?xf64>) -> !llvm.ptr
  %2 = call @cholesky(%0, %1, %count, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return %2 : i64
}
