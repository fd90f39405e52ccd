// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-rematerialise=budget=-1 --verify-diagnostics %s

// expected-error @below {{the budget is a number of bytes, but is -1}}
module {
  func.func @main(%x: tensor<4xf64>) -> tensor<4xf64> {
    %0 = "graphc.exp"(%x) : (tensor<4xf64>) -> tensor<4xf64>
    return %0 : tensor<4xf64>
  }
}
