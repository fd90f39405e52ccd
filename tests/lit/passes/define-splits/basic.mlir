// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-define-splits %s | filecheck %s

llvm.func @graphc_split_products_3(i64, i64, i64, i64, !llvm.ptr, i64, !llvm.struct<(f64, f64)>, f64)
  attributes {graphc.helper = {kind = "split", number = 3 : i64, products = true}}

// Others stay as they are.
// CHECK: llvm.func @other(i64)
llvm.func @other(i64)

// What is not read is not in the frame; a pair takes two words.
// CHECK: llvm.func @graphc_share(!llvm.ptr, !llvm.ptr, i64, i64, i64, i64) attributes {no_unwind, passthrough = ["cold"]}
// CHECK: llvm.func internal @graphc_range_3(%[[FRAME:.*]]: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-DAG: llvm.getelementptr %[[FRAME]][0]
// CHECK-DAG: llvm.getelementptr %[[FRAME]][1]
// CHECK-DAG: llvm.getelementptr %[[FRAME]][3]
// CHECK-NOT: llvm.getelementptr
// CHECK: %[[UNREAD:.*]] = llvm.mlir.poison : i64
// CHECK: llvm.call @graphc_body_3(%{{.*}}, %[[UNREAD]], %{{.*}}) {no_inline}
// CHECK: llvm.func internal @graphc_split_products_3
// CHECK: llvm.alloca %{{.*}} x i64 {alignment = 16
// CHECK: %[[LONG:.*]] = llvm.icmp "sgt"
// CHECK: %[[MIDDLE:.*]] = llvm.icmp "ult"
// CHECK: llvm.and %[[LONG]], %[[MIDDLE]]
// CHECK: llvm.call @graphc_body_3
// CHECK: llvm.mlir.addressof @graphc_range_3
// CHECK: llvm.call @graphc_share
llvm.func @graphc_body_3(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr, %unread: i64, %pair: !llvm.struct<(f64, f64)>, %number: f64) -> i64 {
  llvm.store %pair, %data : !llvm.struct<(f64, f64)>, !llvm.ptr
  llvm.store %number, %data : f64, !llvm.ptr
  llvm.return %upper : i64
}
