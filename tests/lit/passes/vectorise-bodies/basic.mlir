// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies=bytes=64 --split-input-file %s | filecheck %s

// Four copies of a short body for whole vectors, and a masked one for what is left.
// CHECK: llvm.func @main() attributes {graphc.single, graphc.vectorised}
// CHECK: %[[TWO:.*]] = llvm.mlir.constant(dense<2.000000e+00> : vector<8xf64>)
// CHECK: llvm.shufflevector
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<8xf64>
// CHECK-COUNT-4: llvm.fmul %{{.*}}, %[[TWO]] {fastmathFlags = #llvm.fastmath<contract>} : vector<8xf64>
// CHECK: %[[MASK:.*]] = llvm.icmp "ult" %{{.*}} : vector<8xi8>
// CHECK: llvm.intr.masked.load %{{.*}}, %[[MASK]]
// CHECK: llvm.intr.masked.store %{{.*}}, %[[MASK]]
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f64) : f64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %u = llvm.fmul %v, %two {fastmathFlags = #llvm.fastmath<contract>} : f64
  %w = llvm.fadd %u, %k : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// The widest number decides how many there are in a vector.
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<8xi8>
// CHECK: llvm.sitofp %{{.*}} : vector<8xi8> to vector<8xf64>
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f64) : f64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %v = llvm.load %p : !llvm.ptr -> i8
  %w = llvm.sitofp %v : i8 to f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// A buffer that is written where it was read.
// CHECK: graphc.vectorised
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f64) : f64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Sums have accumulators of vectors, one for each copy; what is left out by the mask is -0. The lanes are added
// up after the loop.
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(dense<-0.000000e+00> : vector<8xf64>)
// CHECK-COUNT-4: llvm.fadd %{{.*}} {fastmathFlags = #llvm.fastmath<reassoc>} : vector<8xf64>
// CHECK: "llvm.intr.vector.reduce.fadd"(%arg4,
// CHECK: llvm.intr.masked.load
// CHECK: llvm.select %{{.*}}, %{{.*}}, %[[ZERO]]
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %x: !llvm.ptr, %s: f64) -> f64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower, %s : i64, f64)
^head(%i: i64, %a: f64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %b = llvm.fadd %a, %v {fastmathFlags = #llvm.fastmath<reassoc>} : f64
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %b : i64, f64)
^end:
  llvm.return %a : f64
}

// -----

// In modules of a divided kernel, a final function goes to a module of its own, and is declared where it was.
// CHECK: module @graphc_piece_0 
// CHECK: llvm.func hidden @graphc_part_0(i64, !llvm.ptr, !llvm.ptr) -> i64
// CHECK: llvm.func @graphc_part_1
// CHECK: module @graphc_piece_0_final attributes {graphc.exports = ["graphc_part_0"], graphc.vectorised}
// CHECK: llvm.func hidden @graphc_part_0
// CHECK: vector<8xf64>
module {
module @graphc_piece_0 attributes {graphc.exports = []} {
llvm.func @graphc_part_0(%upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%upper : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
llvm.func @graphc_part_1(%upper: i64, %x: !llvm.ptr, %y: !llvm.ptr) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%upper : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
}
}
