// RUN: not graphc-opt --verify-diagnostics %s 2>&1 | filecheck %s

// CHECK: error: unexpected error: 'graphc.exp' op result dimension 0 must be 2, but is 3
// CHECK: error: expected error "something else" was not produced
func.func @f(%x: tensor<2xf64>) {
  // expected-error @below {{something else}}
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  return
}
