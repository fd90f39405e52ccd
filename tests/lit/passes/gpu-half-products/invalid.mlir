// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-half-products --verify-diagnostics --split-input-file %s

// It looks for products of the graph, before there are buffers.
func.func @main(%x: memref<?xf64>) {
  // expected-error @below {{'memref.dealloc' is not legal before the graph pass graphc-gpu-half-products}}
  memref.dealloc %x : memref<?xf64>
  return
}
