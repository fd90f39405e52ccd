// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies='bytes=64 libmvec=true' %s | filecheck %s

// Functions of libm are those of vectors, whose names say how many bytes these have.
// CHECK-DAG: llvm.func @_ZGVeN8vv_pow(vector<8xf64>, vector<8xf64>) -> vector<8xf64> attributes {no_unwind}
// CHECK-DAG: llvm.func @_ZGVdN8v_erff(vector<8xf32>) -> vector<8xf32> attributes {no_unwind}
// CHECK-COUNT-2: llvm.call @_ZGVeN8vv_pow
// CHECK-COUNT-2: llvm.call @_ZGVdN8v_erff
llvm.func @erff(f32) -> f32
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %u = llvm.intr.pow(%v, %v) : (f64, f64) -> f64
  %s = llvm.fptrunc %u : f64 to f32
  %w = llvm.call @erff(%s) : (f32) -> f32
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  llvm.store %w, %q : f32, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
