// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-expand-math=keep=sine --verify-diagnostics %s

// expected-error @below {{option keep names 'sine', which has no expansion; these have: acos, asin, atan}}
module {
  func.func @f(%a: f64) -> f64 {
    %0 = math.exp %a : f64
    return %0 : f64
  }
}
