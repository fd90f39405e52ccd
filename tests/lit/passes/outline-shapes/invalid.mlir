// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-outline-shapes --verify-diagnostics --split-input-file %s

// expected-error @below {{outline-shapes needs a function @main}}
module {
  func.func @other() {
    return
  }
}

// -----

func.func @main() {
  return
}

// expected-error @below {{outline-shapes makes the function @shapes, but there is one already}}
func.func @shapes() {
  return
}
