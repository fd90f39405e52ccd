// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-constants --verify-diagnostics --split-input-file %s

// One thread writes the elements: these have to be few.
memref.global "private" constant @many : memref<2000xf64> = dense<1.0>
func.func @long(%y: memref<2000xf64>) {
  // expected-error @below {{memref<2000xf64> in the program has more than 1024 elements: pass it as an argument}}
  %x = memref.get_global @many : memref<2000xf64>
  memref.copy %x, %y : memref<2000xf64> to memref<2000xf64>
  return
}
