// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-parts --verify-diagnostics --split-input-file %s

// Kernels are made of buffers: bufferization comes first.
func.func @early(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{'graphc.exp' is not legal after the buffer pass graphc-gpu-parts}}
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
