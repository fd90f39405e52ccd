// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-factor --canonicalize --cse --split-input-file %s | filecheck %s

// A triangular system whose diagonal is ones has no error; with the transpose of the lower triangle the last
// row comes first. The matrix is read as it lies.
// CHECK: gpu.func @solve_triangular_small_0({{.*}}memref<?x?xf32, strided<[?, ?], offset: ?>>
// CHECK-NOT: arith.divf
// CHECK: func.func @transposed
// CHECK: gpu.launch_func @kernels::@solve_triangular_small_0
// CHECK: gpu.launch_func @kernels::@solve_triangular_1
// CHECK: return %c0_i64
func.func private @solve_triangular(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "solve_triangular", types = ["f32", "f32", "f32"], keywords = ["check", "lower", "trans", "unit_diagonal"], values = array<i64: 0, 1, 1, 1>}}
func.func @transposed(%a: memref<?x?xf32, strided<[?, ?], offset: ?>>, %b: memref<?x?xf32>, %x: memref<?x?xf32>, %n: i64, %k: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf32, strided<[?, ?], offset: ?>>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf32>) -> !llvm.ptr
  %2 = "graphc.address"(%x) {access = "write"} : (memref<?x?xf32>) -> !llvm.ptr
  %3 = call @solve_triangular(%0, %1, %2, %one, %zero, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64
  return %3 : i64
}

// -----

// Sides that are known: only the kernel for small matrices has blocks.
// CHECK: func.func @small
// CHECK: gpu.launch_func @kernels::@cholesky_small_0 blocks in (%c9, %c1, %c1)
// CHECK: gpu.launch_func @kernels::@cholesky_1 blocks in (%c0, %c1, %c1)
func.func private @cholesky(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "cholesky", types = ["f32", "f32"], keywords = ["check", "lower"], values = array<i64: 0, 0>}}
func.func @small(%a: memref<9x5x5xf32>, %l: memref<9x5x5xf32>, %count: i64, %n: i64) {
  %0 = "graphc.address"(%a) {access = "read"} : (memref<9x5x5xf32>) -> !llvm.ptr
  %1 = "graphc.address"(%l) {access = "write"} : (memref<9x5x5xf32>) -> !llvm.ptr
  %2 = call @cholesky(%0, %1, %count, %n, %n, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return
}

// -----

// A system: the right sides are beside the matrix, and rows are exchanged.
// CHECK: gpu.func @solve_small_0({{.*}} workgroup(%{{.*}} : memref<32x65xf64, #gpu.address_space<workgroup>>)
// CHECK: math.absf
// CHECK: arith.cmpf ogt
// CHECK: gpu.func @solve_1
// CHECK: func.func @system
// CHECK: gpu.launch_func @kernels::@solve_small_0
// CHECK: memref.load
func.func private @solve(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "solve", types = ["f64", "f64", "f64"], keywords = ["assume", "check", "lower", "transposed"], values = array<i64: 0, 1, 0, 0>}}
func.func @system(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %x: memref<?x?xf64>, %memory: memref<?xi8>, %n: i64, %k: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %2 = "graphc.address"(%x) {access = "write"} : (memref<?x?xf64>) -> !llvm.ptr
  %3 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %4 = call @solve(%0, %1, %2, %3, %one, %zero, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64
  return %4 : i64
}

// -----

// Of a symmetric matrix the lower triangle is read, also where the transpose is asked for.
// CHECK: gpu.func @solve_small_0
// CHECK: %[[ROW:.*]] = arith.maxsi
// CHECK: %[[COLUMN:.*]] = arith.minsi
// CHECK: memref.load %{{.*}}[%[[ROW]], %[[COLUMN]]]
// CHECK: math.absf
// CHECK: func.func @symmetric
func.func private @solve(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "solve", types = ["f64", "f64", "f64"], keywords = ["assume", "check", "lower", "transposed"], values = array<i64: 1, 1, 1, 1>}}
func.func @symmetric(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %x: memref<?x?xf64>, %memory: memref<?xi8>, %n: i64, %k: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %2 = "graphc.address"(%x) {access = "write"} : (memref<?x?xf64>) -> !llvm.ptr
  %3 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %4 = call @solve(%0, %1, %2, %3, %one, %zero, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64
  return %4 : i64
}

// -----

// A positive definite matrix: roots of pivots, no exchange of rows; the status is that of another error.
// CHECK: gpu.func @solve_small_0({{.*}} workgroup(%{{.*}} : memref<32x65xf64, #gpu.address_space<workgroup>>)
// CHECK-NOT: math.absf
// CHECK: math.sqrt
// CHECK: arith.select %{{.*}}, %c0_i64{{.*}}, %c2_i64
// CHECK: func.func @positive
func.func private @solve(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "solve", types = ["f64", "f64", "f64"], keywords = ["assume", "check", "lower", "transposed"], values = array<i64: 3, 1, 0, 0>}}
func.func @positive(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %x: memref<?x?xf64>, %memory: memref<?xi8>, %n: i64, %k: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%b) {access = "read"} : (memref<?x?xf64>) -> !llvm.ptr
  %2 = "graphc.address"(%x) {access = "write"} : (memref<?x?xf64>) -> !llvm.ptr
  %3 = "graphc.address"(%memory) {access = "write"} : (memref<?xi8>) -> !llvm.ptr
  %4 = call @solve(%0, %1, %2, %3, %one, %zero, %zero, %n, %k) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64) -> i64
  return %4 : i64
}
