// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-count-work %s | filecheck %s

// CHECK: graphc.work = {expressions =
// CHECK-SAME: body = {flops = {f64 = 1 : i64}, functions = {"exp f64" = 1 : i64}, moved = {read = 8 : i64, written = 8 : i64}, parts = []}
// CHECK-SAME: what = "loop"
// CHECK: func.func @main
func.func @main(%x: memref<?xf64>, %y: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = math.exp %0 : f64
    %2 = arith.addf %1, %0 : f64
    memref.store %2, %y[%i] : memref<?xf64>
  }
  return
}
