// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-running --canonicalize --cse %s | filecheck %s

// Parts of a long line, and then the numbers; a short one has no parts, and the first grid is empty.
// CHECK: gpu.func @totals_0
// CHECK: gpu.shuffle up
// CHECK: gpu.func @running_1
// CHECK: func.func @main
// CHECK: %[[SEVERAL:.*]] = arith.cmpi sgt, %[[PARTS:.*]], %c1
// CHECK: %[[GRID:.*]] = arith.select %[[SEVERAL]], %c1, %c0
// CHECK: gpu.launch_func @kernels::@totals_0 blocks in (%[[GRID]], %[[PARTS]], %c1)
// CHECK: gpu.launch_func @kernels::@running_1 blocks in (%c1, %[[PARTS]], %c1)
// CHECK-NOT: call @recurrence
func.func private @recurrence(!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) attributes {graphc.helper = {kind = "kernel", name = "recurrence", types = ["f64", "f64", "f64"], keywords = ["keep_initial", "kind", "reverse"], values = array<i64: 0, 0, 0>}}
func.func @main(%x: memref<?xf64>, %first: memref<1xf64>, %y: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %0 = "graphc.address"(%x) {access = "read"} : (memref<?xf64>) -> !llvm.ptr
  %1 = "graphc.address"(%first) {access = "read"} : (memref<1xf64>) -> !llvm.ptr
  %2 = "graphc.address"(%y) {access = "write"} : (memref<?xf64>) -> !llvm.ptr
  %3 = arith.index_cast %n : index to i64
  call @recurrence(%0, %1, %2, %3) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
  return
}
