// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-divide-kernel="large=0 size=2" %s | filecheck %s
// RUN: graphc-opt --graphc-divide-kernel %s | filecheck %s --check-prefix SMALL

// A small kernel stays as it is.
// SMALL-NOT: builtin.module
// SMALL-NOT: graphc_call_

// A value is put into the frame where it is defined, and a loop that threads share reads the frame itself.
// CHECK: llvm.func @main(%[[DATA:.*]]: !llvm.ptr, %[[N:.*]]: i64)
// CHECK: %[[FRAME:.*]] = llvm.alloca %{{.*}} x !llvm.array<2 x i64>
// CHECK-DAG: llvm.store %[[DATA]]
// CHECK-DAG: llvm.store %[[N]]
// CHECK: llvm.call @graphc_call_graphc_split_0(%[[FRAME]])
// CHECK: llvm.call @graphc_stays
// CHECK: module @graphc_piece_0
// CHECK: llvm.func internal @graphc_range_0(%[[GIVEN:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.call @graphc_body_0(
// CHECK: llvm.func hidden @graphc_call_graphc_split_0(%[[GIVEN:.*]]: !llvm.ptr)
// CHECK: llvm.call @graphc_range_0(%[[GIVEN]]
// CHECK: llvm.call @graphc_share(%{{.*}}, %[[GIVEN]]
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @main(%data: !llvm.ptr, %n: i64) -> i64 {
  %0 = llvm.mlir.constant(0 : i64) : i64
  %1 = llvm.mlir.constant(5 : i64) : i64
  llvm.call @graphc_split_0(%0, %n, %1, %1, %data) : (i64, i64, i64, i64, !llvm.ptr) -> ()
  llvm.call @graphc_stays(%n) : (i64) -> ()
  llvm.return %n : i64
}
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr) -> i64 {
  llvm.store %lower, %data : i64, !llvm.ptr
  llvm.return %upper : i64
}
llvm.func @graphc_stays(%n: i64)
