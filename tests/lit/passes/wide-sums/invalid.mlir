// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-wide-sums --verify-diagnostics --split-input-file %s

// A module of a later stage is refused.
func.func @late(%x: memref<?xf64>, %i: index) -> f64 {
  // expected-error @below {{'memref.load' is not legal before the graph pass graphc-wide-sums}}
  %0 = memref.load %x[%i] : memref<?xf64>
  return %0 : f64
}
