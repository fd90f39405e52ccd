// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-kernel-abi --split-input-file %s | filecheck %s

// CHECK: module attributes {graphc.sites = [{error = "ValueError", message = "sizes differ: {given} and {expected}", node = "n3"}]}
// CHECK: func.func @main(%{{.*}}: !llvm.ptr, %{{.*}}: memref<?xf64>) -> i64 attributes {graphc.buffers = array<i32: 2>}
// CHECK: cf.cond_br %{{.*}}, ^[[OK:.*]], ^[[BAD:.*]]
// CHECK: ^[[OK]]:
// CHECK: memref.store
// CHECK: return %c0_i64
// CHECK: ^[[BAD]]:
// CHECK: llvm.store
// CHECK: llvm.store
// CHECK: return %c1_i64
func.func @main(%x: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %v = arith.constant 1.0 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  %ok = arith.cmpi eq, %n, %c3 : index
  "graphc.check"(%ok, %n, %c3) {message = "sizes differ: {given} and {expected}", error = "ValueError"} : (i1, index, index) -> () loc("n3"("model.py":7:0))
  memref.store %v, %x[%c0] : memref<?xf64>
  return
}

// The sizes go through a pointer that becomes the last argument.
// CHECK: func.func @shapes(%{{.*}}: !llvm.ptr, %{{.*}}: memref<?xf64>, %[[OUT:[a-z0-9]+]]: !llvm.ptr) -> i64
// CHECK: %[[N:.*]] = arith.index_cast
// CHECK: llvm.store %[[N]], %[[OUT]]
func.func @shapes(%x: memref<?xf64>) -> index {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  return %n : index
}

// -----
// What is long runs once a call all the same: LLVM leaves it as it is.
// CHECK: func.func @shapes({{.*}}) -> i64 attributes {{{.*}}llvm.no_inline, llvm.optimize_none
func.func @shapes(%x: memref<?xf64>, %y: memref<?xf64>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %m = memref.dim %y, %c0 : memref<?xf64>
  %a = arith.addi %n, %c1 : index
  %b = arith.addi %m, %c1 : index
  %c = arith.maxsi %a, %c0 : index
  %d = arith.maxsi %b, %c0 : index
  %e = arith.minsi %c, %n : index
  %f = arith.minsi %d, %m : index
  %g = arith.subi %e, %c1 : index
  %h = arith.subi %f, %c1 : index
  return %g, %h : index, index
}
