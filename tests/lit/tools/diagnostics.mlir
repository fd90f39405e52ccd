// RUN: not graphc-opt %s 2>&1 | filecheck %s

// An error shows the line it points to.
// CHECK: diagnostics.mlir:9:8: error: 'graphc.exp' op result dimension 0 must be 2, but is 3
// CHECK-NEXT: %0 = "graphc.exp"(%x)
// CHECK-NEXT: {{^ {7}\^$}}
// CHECK-NOT: Traceback
func.func @f(%x: tensor<2xf64>) {
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  return
}
