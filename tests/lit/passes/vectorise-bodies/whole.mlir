// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies='bytes=32 masks=false libmvec=true' --split-input-file %s | filecheck %s

// Without masks: four copies of a short body, whole vectors one by one, and the loop as it was for what is
// less than one.
// CHECK: llvm.func @main() attributes {always_inline, graphc.inlined, graphc.single, graphc.vectorised}
// CHECK-NOT: masked
// CHECK-COUNT-5: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<4xf64>
// CHECK: llvm.store %{{.*}} : vector<4xf64>, !llvm.ptr
// CHECK: llvm.br ^[[HEAD:bb[0-9]+]](
// CHECK: ^[[HEAD]](
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> f64
// CHECK: llvm.br ^[[HEAD]](
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fadd %v, %k : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Integers of 64 bits are not multiplied with vectors of AVX2.
// CHECK-NOT: graphc.vectorised
// CHECK: llvm.mul %{{.*}} : i64
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
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %v = llvm.load %p : !llvm.ptr -> i64
  %w = llvm.mul %v, %v : i64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %w, %q : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// A module of its own has what the loops as they were call.
// CHECK: module @graphc_piece_0_final
// CHECK-DAG: llvm.func @_ZGVdN4v_cosh(vector<4xf64>)
// CHECK-DAG: llvm.func @cosh(f64) -> f64
// CHECK-DAG: llvm.call @cosh(%{{.*}}) : (f64) -> f64
module {
module @graphc_piece_0 attributes {graphc.exports = []} {
llvm.func @cosh(f64) -> f64
llvm.func @graphc_part_0(%upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%upper : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.call @cosh(%v) : (f64) -> f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
llvm.func @graphc_part_1(%lower: i64, %upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %v = llvm.load %p : !llvm.ptr -> i64
  %w = llvm.mul %v, %v : i64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %w, %q : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
}
}

// -----

// A module in which LLVM could do nothing for the other loops is final itself: they call what is final.
// CHECK: module @graphc_piece_0 attributes {graphc.exports = [], graphc.vectorised}
// CHECK: llvm.call @_ZGVdN4v_cosh
// CHECK-NOT: _final
module {
module @graphc_piece_0 attributes {graphc.exports = []} {
llvm.func @cosh(f64) -> f64
llvm.func @graphc_part_0_inner_0(%upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%upper : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.call @cosh(%v) : (f64) -> f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
llvm.func @graphc_part_0(%upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %many = llvm.mlir.constant(4096 : i64) : i64
  llvm.br ^head(%zero : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %next = llvm.add %i, %many : i64
  %last = llvm.intr.smin(%next, %upper) : (i64, i64) -> i64
  %status = llvm.call @graphc_part_0_inner_0(%last, %x, %y) : (i64, !llvm.ptr, !llvm.ptr) -> i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return
}
}
}
