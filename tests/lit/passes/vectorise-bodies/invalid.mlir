// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-vectorise-bodies=bytes=32 --verify-diagnostics %s

func.func @early(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.neg' is not legal before the llvm pass graphc-vectorise-bodies}}
  %0 = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
