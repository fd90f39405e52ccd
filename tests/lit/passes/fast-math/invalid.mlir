// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-fast-math=level=ofast --verify-diagnostics %s

// expected-error @below {{there is no fast-math level 'ofast'; there are off, contract, reassoc, fast}}
module {
  func.func @f(%a: f64) -> f64 {
    return %a : f64
  }
}
