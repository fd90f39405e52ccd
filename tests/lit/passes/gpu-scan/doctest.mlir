// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scan --canonicalize --cse %s | filecheck %s

// Each thread has an element of the state in a register, runs all steps, and writes its column of the trace.
// CHECK: gpu.func @steps_0
// CHECK: scf.for %[[E:.*]] = %{{.*}} to
// CHECK: %[[H:.*]] = memref.load %{{.*}}[%[[E]]]
// CHECK: scf.for %[[T:.*]] = %c0 to %{{.*}} step %c1 iter_args(%[[S:.*]] = %[[H]]) -> (f32)
// CHECK: %[[N:.*]] = math.tanh %[[S]]
// CHECK: memref.store %[[N]], %{{.*}}[%[[E]]]
// CHECK: scf.yield %[[N]] : f32
// CHECK: func.func @main
// CHECK-NOT: scf.for
// CHECK: gpu.launch_func @kernels::@steps_0
#id = affine_map<(i) -> (i)>
func.func @main(%h: memref<?xf32>, %trace: memref<?x?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %h, %c0 : memref<?xf32>
  %first = memref.cast %h : memref<?xf32> to memref<?xf32, strided<[1], offset: ?>>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%s = %first) -> (memref<?xf32, strided<[1], offset: ?>>) {
    %row = memref.subview %trace[%t, 0] [1, %b] [1, 1]
        : memref<?x?xf32> to memref<?xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%s : memref<?xf32, strided<[1], offset: ?>>) outs(%row : memref<?xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.tanh %a : f32
      linalg.yield %0 : f32
    }
    scf.yield %row : memref<?xf32, strided<[1], offset: ?>>
  }
  return
}
