// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-reuse-operands --verify-diagnostics %s

func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.neg' is not legal after the buffer pass graphc-reuse-operands}}
  %0 = "graphc.neg"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
