// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-count-work --split-input-file %s | filecheck %s

// The element of %x is read again in each of the inner loops: its address does not change there. What was
// written is not read from memory.
// CHECK: graphc.work = {expressions = {{\[\[}}"const", 0], ["dim", 0, 0], ["const", 1], ["dim", 1, 1], ["dim", 1, 0]]
// CHECK-SAME: kernels = [{body = {flops = {}, functions = {}, moved = {}, parts = [{body = {flops = {}, functions = {}, moved = {}, parts = [{body = {flops = {f64 = 2 : i64}, functions = {}, moved = {read = 16 : i64, written = 16 : i64}, parts = []}, bounds = [0, 3, 2], loop = 1 : i64}]}, bounds = [0, 1, 2], loop = 0 : i64}]}
// CHECK-SAME: nodes = ["n0"]
// CHECK-SAME: places = [{count = [], item = 8 : i64, loops = {{.}}[0, 0, 1, 2]], root = 0 : i64, written = false}, {count = [], item = 8 : i64, loops = {{.}}[0, 0, 1, 2], [1, 0, 3, 2]], root = 1 : i64, written = true}]
// CHECK-SAME: what = "loop"}]
// CHECK-SAME: roots = {{.}}[1], [4, 3]]
func.func @main(%x: memref<?xf64>, %y: memref<?x?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c1 : memref<?x?xf64>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %x[%i] : memref<?xf64> loc(#n0)
      %1 = arith.mulf %0, %0 : f64
      memref.store %1, %y[%i, %j] : memref<?x?xf64>
      %2 = memref.load %y[%i, %j] : memref<?x?xf64>
      %3 = arith.addf %2, %0 : f64
      memref.store %3, %y[%i, %j] : memref<?x?xf64>
    }
  }
  return
}
#n0 = loc("n0")

// -----

// A product has its own sizes; the number of iterations of a `while` is unknown; of a conditional, both sides
// are kept. Only `main` counts.
// CHECK: graphc.work =
// CHECK-SAME: parts = [{flops = {f64 = 2 : i64}, functions = {}, parts = [], times =
// CHECK-SAME: what = "graphc_dgemm"
// CHECK-SAME: parts = [{repeated = {
// CHECK-SAME: either = [{flops = {f64 = 1 : i64}, functions = {}, moved = {}, parts = []}, {flops = {}, functions = {}, moved = {}, parts = []}]
// CHECK-NOT: graphc.work
func.func private @graphc_dgemm(i64, i64, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1) attributes {graphc.helper = {kind = "product", letter = "d", packs = false}}
func.func @main(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %m: i64, %y: memref<f64>) {
  %zero = arith.constant 0 : i64
  %false = arith.constant false
  call @graphc_dgemm(%zero, %zero, %m, %m, %m, %a, %m, %b, %m, %c, %m, %false) : (i64, i64, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> ()
  %start = memref.load %y[] : memref<f64> loc(#n1)
  %r = scf.while (%x = %start) : (f64) -> f64 {
    %go = arith.cmpf ogt, %x, %start : f64
    scf.condition(%go) %x : f64
  } do {
  ^bb0(%x: f64):
    %go = arith.cmpf ogt, %x, %start : f64
    %next = scf.if %go -> f64 {
      %half = arith.mulf %x, %x : f64
      scf.yield %half : f64
    } else {
      scf.yield %x : f64
    }
    scf.yield %next : f64
  }
  memref.store %r, %y[] : memref<f64> loc(#n1)
  return
}
#n1 = loc("n1")
func.func @shapes(%x: f64) -> f64 {
  %0 = arith.addf %x, %x : f64
  return %0 : f64
}
