// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-plan-memory="results=true" --split-input-file %s | filecheck %s
// RUN: graphc-opt --graphc-plan-memory --split-input-file %s | filecheck %s --check-prefix=APART

// A buffer whose lifetime ends before a result is accessed lies there; the other one does not.
// CHECK-LABEL: @main
// CHECK-SAME: [[RESULT:%arg1]]: memref<64xf64>)
// CHECK: [[ADDRESS:%.*]] = memref.extract_aligned_pointer_as_index [[RESULT]]
// CHECK: [[PLACE:%.*]] = call @graphc_scratch([[ADDRESS]], %c0
// CHECK: memref.view [[PLACE]]
// CHECK: call @graphc_workspace_0(%c512
// CHECK: call @graphc_end([[PLACE]])
// CHECK: memref.copy {{.*}}, [[RESULT]]
// APART-LABEL: @main
// APART-NOT: graphc_scratch
func.func @main(%x: memref<64xf64>, %y: memref<64xf64>) attributes {graphc.first_result = 1 : index} {
  %a = memref.alloc() : memref<64xf64>
  %b = memref.alloc() : memref<64xf64>
  memref.copy %x, %a : memref<64xf64> to memref<64xf64>
  memref.copy %a, %b : memref<64xf64> to memref<64xf64>
  memref.copy %b, %y : memref<64xf64> to memref<64xf64>
  return
}

// -----

// Elements that are larger than the result's, and buffers that are larger than it, lie in the workspace, and so do
// those of a function that does not say which arguments are results.
// CHECK-LABEL: @main
// CHECK-NOT: graphc_scratch
func.func @main(%x: memref<64xf64>, %y: memref<128xf32>, %z: memref<32xf64>) attributes {graphc.first_result = 1 : index} {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<64xf64>
  memref.copy %x, %a : memref<64xf64> to memref<64xf64>
  memref.copy %a, %x : memref<64xf64> to memref<64xf64>
  %e = arith.constant 0.0 : f32
  %f = arith.constant 0.0 : f64
  memref.store %e, %y[%c0] : memref<128xf32>
  memref.store %f, %z[%c0] : memref<32xf64>
  return
}

// -----

// CHECK-LABEL: @main
// CHECK-NOT: graphc_scratch
func.func @main(%x: memref<64xf64>, %y: memref<64xf64>) {
  %a = memref.alloc() : memref<64xf64>
  memref.copy %x, %a : memref<64xf64> to memref<64xf64>
  memref.copy %a, %x : memref<64xf64> to memref<64xf64>
  memref.copy %x, %y : memref<64xf64> to memref<64xf64>
  return
}
