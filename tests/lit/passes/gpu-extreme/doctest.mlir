// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-extreme --canonicalize --cse %s | filecheck %s

// An element and its position decide together; whether a row has elements is known from its size.
// CHECK: func.func @main
// CHECK: linalg.generic
// CHECK: linalg.generic
// CHECK: linalg.generic {{{.*}}iterator_types = ["parallel", "reduction"]} ins({{.*}}) outs({{.*}} : memref<?xf32>, memref<?xi64>) attrs = {graphc.first = "gt"}
// CHECK: linalg.index 1
// CHECK: %[[BEHIND:.*]] = arith.cmpf ole
// CHECK: arith.cmpf oeq
// CHECK: linalg.generic
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
