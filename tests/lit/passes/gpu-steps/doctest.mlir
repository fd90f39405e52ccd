// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-steps --canonicalize %s | filecheck %s

// The kernel finds the row of its step; the loop launches the same each time.
// CHECK: gpu.func @start_1(%[[N:.*]]: memref<i64>) kernel
// CHECK: memref.store %c0_i64, %[[N]][]
// CHECK: gpu.func @next_2(%[[N:.*]]: memref<i64>) kernel
// CHECK: arith.addi %{{.*}}, %c1_i64
// CHECK: gpu.func @row_3(%[[N:.*]]: memref<i64>, %[[X:.*]]: memref<?x4xf32>) kernel
// CHECK: %[[S:.*]] = memref.load %[[N]][] : memref<i64>
// CHECK: %[[I:.*]] = arith.index_cast %[[S]] : i64 to index
// CHECK: %[[R:.*]] = memref.subview %[[X]][%[[I]], 0] [1, 4] [1, 1]
// CHECK: memref.store %{{.*}}, %[[R]]
// CHECK: func.func @main(%[[X:.*]]: memref<?x4xf32>, %{{.*}}: index)
// CHECK: %[[N:.*]] = memref.alloc() : memref<i64>
// CHECK: gpu.launch_func @kernels::@start_1 {{.*}} args(%[[N]] : memref<i64>)
// CHECK: scf.for
// CHECK-NEXT: gpu.launch_func @kernels::@row_3 {{.*}} args(%[[N]] : memref<i64>, %[[X]] : memref<?x4xf32>)
// CHECK-NEXT: gpu.launch_func @kernels::@next_2 {{.*}} args(%[[N]] : memref<i64>)
// CHECK-NEXT: }
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @row(%r: memref<4xf32, strided<[1], offset: ?>>) kernel {
      %one = arith.constant 1.0 : f32
      %i = gpu.thread_id x
      memref.store %one, %r[%i] : memref<4xf32, strided<[1], offset: ?>>
      gpu.return
    }
  }
  func.func @main(%x: memref<?x4xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %n step %c1 {
      %r = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
      gpu.launch_func @kernels::@row blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%r : memref<4xf32, strided<[1], offset: ?>>)
    }
    return
  }
}
