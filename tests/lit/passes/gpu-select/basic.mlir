// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-select --canonicalize --cse %s | filecheck %s

// Positions are no elements that are read: only the mask is.
// CHECK: gpu.func @select_3(%{{[^:]*}}: index, %{{[^:]*}}: index, %{{[^:]*}}: memref<1x?xi64>, %{{[^:]*}}: memref<?xi8>, %{{[^:]*}}: index, %{{[^:]*}}: memref<?xi64>)
// CHECK-NOT: call @flatnonzero
func.func private @flatnonzero(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "flatnonzero", types = ["bool", "i64"], keywords = [], values = array<i64>}}
func.func @main(%mask: memref<?xi8>, %y: memref<?xi64>, %rows: i64, %n: i64, %k: i64) {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%mask) {access = "read"} : (memref<?xi8>) -> !llvm.ptr
  %1 = "graphc.address"(%y) {access = "write"} : (memref<?xi64>) -> !llvm.ptr
  %2 = call @flatnonzero(%0, %1, %rows, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}
