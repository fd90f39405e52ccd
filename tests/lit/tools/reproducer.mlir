// RUN: not graphc-opt --cse --graphc-fusion --mlir-pass-pipeline-crash-reproducer=%t %s 2>&1 | filecheck %s
// RUN: filecheck %s --check-prefix=FILE --input-file=%t
// RUN: not graphc-opt --run-reproducer %t 2>&1 | filecheck %s --check-prefix=AGAIN

// A pass of the graph stage refuses a module that is already lowered.
// CHECK: reproducer.mlir:13:3: error: 'memref.dealloc' is not legal before the graph pass graphc-fusion
// CHECK: note: a reproducer was written to
// FILE: func.func @late
// FILE: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,graphc-fusion)"
// AGAIN: error: 'memref.dealloc' is not legal
func.func @late(%x: memref<3xf64>) {
  memref.dealloc %x : memref<3xf64>
  return
}
