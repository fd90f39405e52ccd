// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies=bytes=64 --split-input-file %s | filecheck %s

// What is left to LLVM.
// CHECK-NOT: vector<8x
// CHECK-NOT: graphc.vectorised

// Stores that loads may see.
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
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// The element before, which was stored.
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
  %j = llvm.sub %i, %one : i64
  %p = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f64
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

// Elements of two sizes in one buffer.
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
  %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %p : !llvm.ptr -> f32
  %w = llvm.fpext %v : f32 to f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Calls.
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
  %w = llvm.intr.sin(%v) : (f64) -> f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Divisions of integers, which trap.
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
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %v = llvm.load %p : !llvm.ptr -> i64
  %w = llvm.sdiv %v, %v : i64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %w, %q : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// The number of the element.
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
  %w = llvm.sitofp %i : i64 to f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// The number of the element itself.
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
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %i, %q : i64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Part of another buffer.
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f64) : f64
  %z = llvm.getelementptr %y[1] : (!llvm.ptr) -> !llvm.ptr, f64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %z[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// A volatile access.
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
  %v = llvm.load volatile %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// A loop in another one that may be short.
llvm.func @main() {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^rows(%lower : i64)
^rows(%r: i64):
  %again = llvm.icmp "slt" %r, %upper : i64
  llvm.cond_br %again, ^row, ^return
^row:
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %r : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %v, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  %below = llvm.add %r, %one : i64
  llvm.br ^rows(%below : i64)
^return:
  llvm.return %one : i64
}

// -----

// A sum in its order that is kept in memory, and a sum of what a function gives.
llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}, %upper: i64, %s: f64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.br ^head(%zero, %s : i64, f64)
^head(%i: i64, %a: f64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %b = llvm.fadd %a, %v : f64
  llvm.store %b, %y : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %b : i64, f64)
^end:
  llvm.return
}

// -----

llvm.func @other(f64) -> f64
llvm.func @main(%x: !llvm.ptr, %upper: i64, %s: f64) -> f64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.br ^head(%zero, %s : i64, f64)
^head(%i: i64, %a: f64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %v = llvm.call @other(%a) : (f64) -> f64
  %b = llvm.fadd %a, %v : f64
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %b : i64, f64)
^end:
  llvm.return %a : f64
}

// -----

// Sums that are read on the way.
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %x: !llvm.ptr, %s: f64, %y: !llvm.ptr {llvm.noalias}) -> f64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower, %s : i64, f64)
^head(%i: i64, %a: f64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %b = llvm.fadd %a, %v {fastmathFlags = #llvm.fastmath<reassoc>} : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %b, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %b : i64, f64)
^end:
  llvm.return %a : f64
}

// -----

// A vector that is kept in memory, which LLVM keeps in a register.
llvm.func @main(%n: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%zero : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> vector<16xf64>
  %s = llvm.load %y : !llvm.ptr -> vector<16xf64>
  %t = llvm.fadd %s, %v : vector<16xf64>
  llvm.store %t, %y : vector<16xf64>, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return
}
