// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-library --canonicalize --cse --split-input-file %s | filecheck %s

// Small matrices whose size is known have no choice.
// CHECK: func.func @small
// CHECK-NOT: graphc_found
// CHECK: call @cholesky
func.func private @cholesky(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "cholesky", types = ["f32", "f32"], keywords = ["check", "lower"], values = array<i64: 0, 0>}}
func.func @small(%a: memref<9x5x5xf32>, %l: memref<9x5x5xf32>, %count: i64, %n: i64) {
  %0 = "graphc.address"(%a) {access = "read"} : (memref<9x5x5xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%l) {access = "write"} : (memref<9x5x5xf32>) -> !llvm.ptr
  %2 = call @cholesky(%0, %1, %count, %n, %n, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}

// -----

// A triangular system whose diagonal is ones has no error. It is solved from the right side, in a copy of the
// right sides; the matrix is copied only where its rows do not lie side by side.
// CHECK: func.func @transposed
// CHECK: graphc_found.cublas
// CHECK: scf.if
// CHECK: linalg.generic {{.*}} ins(%arg1
// CHECK: call @graphc_ask.trsm(%{{.*}}, %{{.*}}, %c1, %c1, %c1, %c1, %[[K:.*]], %[[N:.*]], %[[N]], %[[K]], %[[N]], %c1)
// CHECK: } else {
// CHECK: call @solve_triangular
func.func private @solve_triangular(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "solve_triangular", types = ["f32", "f32", "f32"], keywords = ["check", "lower", "trans", "unit_diagonal"], values = array<i64: 0, 1, 1, 1>}}
func.func @transposed(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %x: memref<?x?xf32>, %n: i64, %k: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %2 = "graphc.address"(%x) {access = "write"} : (memref<?x?xf32>) -> !llvm.ptr
  %3 = call @solve_triangular(%0, %1, %2, %one, %zero, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64
  return %3 : i64
}
