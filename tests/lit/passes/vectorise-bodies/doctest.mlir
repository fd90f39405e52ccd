// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies=bytes=32 %s | filecheck %s

// CHECK: graphc.vectorised
llvm.func @main() attributes {graphc.single} {
  llvm.return
}
// CHECK: llvm.fneg %{{.*}} : vector<4xf64>
// CHECK: llvm.intr.masked.store
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %x: !llvm.ptr, %y: !llvm.ptr {llvm.noalias}) -> i64 {
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^head(%lower : i64)
^head(%i: i64):
  %more = llvm.icmp "slt" %i, %upper : i64
  llvm.cond_br %more, ^body, ^end
^body:
  %from = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %value = llvm.load %from : !llvm.ptr -> f64
  %result = llvm.fneg %value : f64
  %to = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  llvm.store %result, %to : f64, !llvm.ptr
  %next = llvm.add %i, %one : i64
  llvm.br ^head(%next : i64)
^end:
  llvm.return %one : i64
}
