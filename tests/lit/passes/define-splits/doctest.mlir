// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-define-splits %s | filecheck %s

// CHECK: llvm.func internal @graphc_split_0(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr) attributes {always_inline}
// CHECK: llvm.call @graphc_share
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 0 : i64, products = false}}
llvm.func @graphc_body_0(%context: !llvm.ptr, %lower: i64, %upper: i64, %data: !llvm.ptr) -> i64 {
  llvm.store %lower, %data : i64, !llvm.ptr
  llvm.return %upper : i64
}
