// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-divide-kernel="large=0 size=2" %s | filecheck %s

// CHECK: llvm.func hidden @graphc_call_graphc_part_0(!llvm.ptr)
// CHECK: llvm.func @main
// CHECK: llvm.call @graphc_call_graphc_part_0(%{{.*}}) : (!llvm.ptr) -> ()
// CHECK: module @graphc_piece_0 attributes {graphc.exports = ["graphc_call_graphc_part_0"]}
// CHECK: llvm.func @graphc_part_0
// CHECK: llvm.func hidden @graphc_call_graphc_part_0
llvm.func @main(%data: !llvm.ptr, %n: i64) -> i64 {
  llvm.call @graphc_part_0(%data, %n) : (!llvm.ptr, i64) -> ()
  llvm.return %n : i64
}
llvm.func @graphc_part_0(%data: !llvm.ptr, %n: i64) attributes {graphc.part} {
  llvm.store %n, %data : i64, !llvm.ptr
  llvm.return
}
