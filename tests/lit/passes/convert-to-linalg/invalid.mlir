// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-convert-to-linalg --verify-diagnostics %s

func.func @element(%x: tensor<?xf64>) -> tensor<?xi4> {
  // expected-error @below {{element type i4 is not supported; expected one of i1, i8,}}
  %0 = "graphc.cast"(%x) : (tensor<?xf64>) -> tensor<?xi4>
  return %0 : tensor<?xi4>
}
