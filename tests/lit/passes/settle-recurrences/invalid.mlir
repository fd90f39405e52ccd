// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-settle-recurrences --verify-diagnostics --split-input-file %s

// A module of the graph stage is refused.
func.func @early(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.exp' is not legal after the buffer pass graphc-settle-recurrences}}
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
