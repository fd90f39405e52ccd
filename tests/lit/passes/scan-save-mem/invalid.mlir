// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-save-mem --verify-diagnostics --split-input-file %s

// Rows that a gradient needs would be lost.
func.func @differentiable(%n: index, %h0: tensor<1xf64>) {
  // expected-error @below {{graphc-scan-save-mem drops rows that the gradient of this scan needs; differentiate first}}
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    "graphc.scan_carry"(%h0, %h) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false, differentiable} : (index) -> !graphc.loop
  return
}

// -----

// A module of a later stage is refused.
func.func @late(%x: memref<?xf64>, %i: index) -> f64 {
  // expected-error @below {{'memref.load' is not legal before the graph pass graphc-scan-save-mem}}
  %0 = memref.load %x[%i] : memref<?xf64>
  return %0 : f64
}
