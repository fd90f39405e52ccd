// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-unpack-arguments %s | filecheck %s

// CHECK: llvm.extractvalue %{{.*}}[1]
// CHECK: call @graphc_part_0(%{{.*}}) : (!llvm.ptr, index) -> ()
// CHECK: func.func private @graphc_part_0(%arg0: !llvm.ptr, %arg1: index)
// CHECK-SAME: graphc.buffers = array<i32: 0>
func.func @main(%x: memref<?xf64>, %i: index) {
  call @graphc_part_0(%x, %i) : (memref<?xf64>, index) -> ()
  return
}
func.func private @graphc_part_0(%x: memref<?xf64>, %i: index) attributes {graphc.part, graphc.buffers = array<i32: 1>} {
  %0 = arith.constant 1.0 : f64
  memref.store %0, %x[%i] : memref<?xf64>
  return
}
