// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-library --canonicalize --cse %s | filecheck %s

// A library that is there is asked for factors of large matrices, in a copy; all else is left to kernels.
// CHECK: func.func @main
// CHECK: %[[FOUND:.*]] = call @graphc_found.cusolver() : () -> i1
// CHECK: %[[STATUS:.*]] = scf.if %{{.*}} -> (i64) {
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?x?x?xf64>
// CHECK: linalg.generic {{.*}} ins(%arg0 {{.*}} outs(%[[COPY]]
// CHECK: %[[INFOS:.*]] = memref.alloc(%{{.*}}) : memref<?xi32>
// CHECK: %[[A:.*]] = "graphc.address"(%[[COPY]])
// CHECK: %[[INFO:.*]] = "graphc.address"(%[[INFOS]])
// CHECK: func.call @graphc_ask.potrf(%[[A]], %[[INFO]], %c0, %[[N:.*]], %[[N]], %{{.*}})
// CHECK: linalg.generic {{.*}} ins(%[[COPY]], %[[INFOS]] {{.*}} outs(%arg1
// CHECK: } else {
// CHECK: func.call @cholesky
// CHECK: return %[[STATUS]]
func.func private @cholesky(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64 attributes {graphc.helper = {kind = "kernel", name = "cholesky", types = ["f64", "f64"], keywords = ["check", "lower"], values = array<i64: 1, 1>}}
func.func @main(%a: memref<?x?x?xf64>, %l: memref<?x?x?xf64>, %count: i64, %n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %0 = "graphc.address"(%a) {access = "read"} : (memref<?x?x?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%l) {access = "write"} : (memref<?x?x?xf64>) -> !llvm.ptr
  %2 = call @cholesky(%0, %1, %count, %zero, %zero, %n) : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) -> i64
  return %2 : i64
}
