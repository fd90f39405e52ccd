// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies=bytes=64 --split-input-file %s | filecheck %s

// Four copies of a short body for whole vectors, and a masked one for what is left.
// CHECK: llvm.func @main() attributes {always_inline, graphc.inlined, graphc.single, graphc.vectorised}
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

// -----

// What iterations wait for is left as it is: a recurrence and a sum in its order. `@main` is inlined, and final.
// CHECK: llvm.func @main(%{{.*}}) attributes {always_inline, graphc.inlined, graphc.vectorised}
// CHECK-NOT: vector<
// CHECK: llvm.fmul
// CHECK-NOT: vector<
// CHECK: llvm.return
llvm.func @main(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}, %upper: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %half = llvm.mlir.constant(5.0e-01 : f64) : f64
  llvm.br ^head(%zero, %half, %half : i64, f64, f64)
^head(%i: i64, %a: f64, %s: f64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %b = llvm.fmul %a, %half : f64
  %d = llvm.fadd %b, %v : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %d, %q : f64, !llvm.ptr
  %t = llvm.fadd %s, %v : f64
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next, %d, %t : i64, f64, f64)
^end:
  llvm.return
}

// -----

// Elements that are passed downwards, from a place in a buffer of the workspace on: the first lane is the last in
// memory. The loop around this one is over blocks.
// CHECK: graphc.vectorised
// CHECK: llvm.getelementptr %{{.*}}[1] : (!llvm.ptr) -> !llvm.ptr, f64
// CHECK: %[[AT:.*]] = llvm.sub %arg1,
// CHECK: %[[LAST:.*]] = llvm.getelementptr %{{.*}}[%[[AT]]]
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[LAST]][-7] : (!llvm.ptr) -> !llvm.ptr, f64
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][-8]
// CHECK: llvm.load %[[FIRST]]
// CHECK: llvm.shufflevector %{{.*}} [7, 6, 5, 4, 3, 2, 1, 0] : vector<8xf64>
// CHECK: llvm.shufflevector %[[MASK:.*]], %[[MASK]] [7, 6, 5, 4, 3, 2, 1, 0] : vector<8xi1>
llvm.func @graphc_buffer(i64, i64, i64) -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
llvm.func @main(%y: !llvm.ptr {llvm.noalias}, %upper: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %many = llvm.mlir.constant(4096 : i64) : i64
  %m = llvm.call @graphc_buffer(%upper, %zero, %many) : (i64, i64, i64) -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  %x = llvm.extractvalue %m[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
  llvm.br ^blocks(%zero : i64)
^blocks(%r: i64):
  %again = llvm.icmp "slt" %r, %upper : i64
  llvm.cond_br %again, ^block, ^return
^block:
  %after = llvm.add %r, %many : i64
  %last = llvm.intr.smin(%after, %upper) : (i64, i64) -> i64
  llvm.br ^head(%r : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %last : i64
  llvm.cond_br %more, ^body, ^blocks(%after : i64)
^body:
  %j = llvm.sub %upper, %i : i64
  %p = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %v = llvm.load %p : !llvm.ptr -> f64
  %w = llvm.fneg %v : f64
  %z = llvm.getelementptr %y[1] : (!llvm.ptr) -> !llvm.ptr, f64
  %q = llvm.getelementptr %z[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %w, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^return:
  llvm.return
}

// -----

// What is the same in each iteration is computed once, as a number.
// CHECK: graphc.vectorised
// CHECK: %[[Q:.*]] = llvm.fdiv %{{.*}}, %{{.*}} : f64
// CHECK-NEXT: %[[U:.*]] = llvm.fmul %[[Q]], %{{.*}} : f64
// CHECK-NOT: llvm.f{{div|mul}}
// CHECK-COUNT-4: llvm.store %{{.*}} : vector<8xf64>, !llvm.ptr
// CHECK-NOT: llvm.f{{div|mul}}
// CHECK: llvm.intr.masked.store
// CHECK-NOT: llvm.f{{div|mul}}
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
llvm.func @graphc_body_0(%c: !llvm.ptr, %lower: i64, %upper: i64, %k: f64, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2.0 : f64) : f64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %v = llvm.fdiv %k, %two : f64
  %u = llvm.fmul %v, %k : f64
  %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %u, %q : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}

// -----

// Loops that work on vectors are final, whatever they call.
// CHECK: llvm.func @main({{.*}}) attributes {{{.*}}graphc.vectorised}
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<16xf64>
llvm.func @product(!llvm.ptr)
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
  llvm.store %v, %y : vector<16xf64>, !llvm.ptr
  llvm.call @product(%y) : (!llvm.ptr) -> ()
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return
}
