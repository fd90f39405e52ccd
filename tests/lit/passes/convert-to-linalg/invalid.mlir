// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-convert-to-linalg --verify-diagnostics --split-input-file %s

func.func @element(%x: tensor<?xf64>) -> tensor<?xi4> {
  // expected-error @below {{element type i4 is not supported; expected one of i1, i8,}}
  %0 = "graphc.cast"(%x) : (tensor<?xf64>) -> tensor<?xi4>
  return %0 : tensor<?xi4>
}

// -----

// A kernel's status is none of a call's arrays.
func.func private @kernel(tensor<?xf64>) -> i64
func.func @status(%x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error @below {{calls of functions of the host give tensors, not i64}}
  %0 = call @kernel(%x) : (tensor<?xf64>) -> i64
  return %x : tensor<?xf64>
}

// -----

// expected-error @below {{'func.func' has a buffer whose element type f128 is not supported}}
func.func @wide(%x: memref<4xf128>) {
  return
}
