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

// -----

func.func @main(%n: i64) -> i64 {
  // expected-error @below {{results whose sizes are asked for are tensors, not i64}}
  return %n : i64
}
