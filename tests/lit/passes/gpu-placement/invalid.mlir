// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-placement --verify-diagnostics --split-input-file %s

// Operations of a graph are placed: afterwards it is too late.
func.func @main(%x: memref<?xf64>) {
  // expected-error @below {{'memref.dealloc' is not legal before the graph pass graphc-gpu-placement}}
  memref.dealloc %x : memref<?xf64>
  return
}
