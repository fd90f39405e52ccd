// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-define-splits --split-input-file %s | filecheck %s

// What only calls loops that threads share has nothing for LLVM to do, and little if they are single ones.
// CHECK: llvm.func @main({{.*}}) attributes {always_inline, graphc.single}
// CHECK: llvm.func internal @graphc_range_0({{.*}}) attributes {no_inline, no_unwind, optimize_none}
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @main(%n: i64, %data: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  llvm.call @graphc_split_0(%zero, %n, %n, %n, %data) : (i64, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return
}
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr) -> i64 {
  llvm.store %lower, %data : i64, !llvm.ptr
  llvm.return %upper : i64
}

// -----
// Nests are no single loops.
// CHECK: llvm.func @main({{.*}}) attributes {always_inline} {
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @main(%n: i64, %data: !llvm.ptr) {
  llvm.call @graphc_split_0(%n, %n, %n, %n, %data) : (i64, i64, i64, i64, !llvm.ptr) -> ()
  llvm.return
}
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr) -> i64 {
  llvm.br ^outer
^outer:
  llvm.br ^inner
^inner:
  %more = llvm.icmp "slt" %lower, %upper : i64
  llvm.cond_br %more, ^inner, ^next
^next:
  llvm.cond_br %more, ^outer, ^end
^end:
  llvm.return %upper : i64
}

// -----
// A loop of its own is optimised.
// CHECK: llvm.func @main
// CHECK-NOT: always_inline
// CHECK: llvm.func @graphc_body_0
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @main(%n: i64, %data: !llvm.ptr) {
  llvm.br ^next(%n : i64)
^next(%i: i64):
  llvm.call @graphc_split_0(%i, %n, %n, %n, %data) : (i64, i64, i64, i64, !llvm.ptr) -> ()
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^next(%n : i64), ^end
^end:
  llvm.return
}
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr) -> i64 {
  llvm.store %lower, %data : i64, !llvm.ptr
  llvm.return %upper : i64
}
