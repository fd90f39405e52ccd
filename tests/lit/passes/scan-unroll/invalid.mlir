// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-unroll --verify-diagnostics --split-input-file %s

func.func @how_often(%n: index) {
  // expected-error @below {{'unroll' must be a number of steps such as 4 : i64, but is "all"}}
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false, unroll = "all"} : (index) -> !graphc.loop
  return
}

// -----

// A module of a later stage is refused.
func.func @late(%x: memref<?xf64>, %i: index) -> f64 {
  // expected-error @below {{'memref.load' is not legal before the graph pass graphc-scan-unroll}}
  %0 = memref.load %x[%i] : memref<?xf64>
  return %0 : f64
}
