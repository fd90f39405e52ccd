// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-define-splits --verify-diagnostics --split-input-file %s

func.func @early(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.neg' is not legal before the llvm pass graphc-define-splits}}
  %0 = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}

// -----

// expected-error @below {{there is no function @graphc_body_7, which a split asks for}}
module {
llvm.func @graphc_split_0(i64, i64, i64, i64, !llvm.ptr)
  attributes {graphc.helper = {kind = "split", number = 7 : i64, products = false}}
}
