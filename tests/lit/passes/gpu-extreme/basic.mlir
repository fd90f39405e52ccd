// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-extreme --canonicalize --cse %s | filecheck %s

// The smallest of signed integers: their keys are turned round. One row has parts of its own.
// CHECK: gpu.func @extremes_0
// CHECK: arith.extsi %{{.*}} : i8 to i32
// CHECK: arith.xori
// CHECK: func.func @smallest
// CHECK: arith.ceildivsi %{{.*}}, %c16384
// CHECK: gpu.launch_func @kernels::@extremes_0 blocks in (%{{.*}}, %{{.*}}, %c1)
func.func private @arg_extreme(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "arg_extreme", types = ["i8", "i64"], keywords = ["smallest"], values = array<i64: 1>}}
func.func @smallest(%x: memref<?xi8>, %y: memref<i64>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?xi8>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<i64>) -> !llvm.ptr
  %2 = call @arg_extreme(%0, %1, %one, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
