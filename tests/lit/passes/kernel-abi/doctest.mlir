// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-kernel-abi %s | filecheck %s

// A kernel gets a context, reports success with 0 and may assume that its buffers do not overlap.
// CHECK: func.func @main(%{{.*}}: !llvm.ptr, %{{.*}}: memref<f64>, %{{.*}}: memref<f64>) -> i64 attributes {graphc.buffers = array<i32: 2, 5>}
// CHECK: return %c0_i64 : i64
func.func @main(%x: memref<f64>, %y: memref<f64>) {
  %0 = memref.load %x[] : memref<f64>
  memref.store %0, %y[] : memref<f64>
  return
}
