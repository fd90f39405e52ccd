// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-library --split-input-file %s | filecheck %s

// Arrays that lie side by side are taken as they are, and so are numbers; other functions are left alone.
// CHECK-LABEL: func.func @main
// CHECK-NOT: memref.alloc
// CHECK: call @graphc_host_0.buffers(%{{.*}}, %{{.*}})
// CHECK: call @other
// CHECK: return
func.func private @graphc_host_0.buffers(memref<?xf64, strided<[?], offset: ?>>, index) -> memref<?xf64>
func.func private @other(memref<?xf64, strided<[2]>>)
func.func @main(%x: memref<?xf64>, %z: memref<?xf64, strided<[2]>>, %n: index) -> memref<?xf64> {
  %c = memref.cast %x : memref<?xf64> to memref<?xf64, strided<[?], offset: ?>>
  %y = func.call @graphc_host_0.buffers(%c, %n) : (memref<?xf64, strided<[?], offset: ?>>, index) -> memref<?xf64>
  func.call @other(%z) : (memref<?xf64, strided<[2]>>) -> ()
  return %y : memref<?xf64>
}

// -----

// A transpose is copied to memory of its own before it leaves the device.
// CHECK: %[[T:.*]] = memref.cast
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: memref.copy %[[T]], %[[COPY]]
// CHECK: %[[SIDE:.*]] = memref.cast %[[COPY]]
// CHECK: call @graphc_host_0.buffers(%[[SIDE]])
func.func private @graphc_host_0.buffers(memref<?x?xf64, strided<[?, ?], offset: ?>>) -> memref<?xf64>
func.func @main(%x: memref<?x?xf64>) -> memref<?xf64> {
  %t = memref.transpose %x (i, j) -> (j, i) : memref<?x?xf64> to memref<?x?xf64, strided<[1, ?]>>
  %c = memref.cast %t : memref<?x?xf64, strided<[1, ?]>> to memref<?x?xf64, strided<[?, ?], offset: ?>>
  %y = func.call @graphc_host_0.buffers(%c) : (memref<?x?xf64, strided<[?, ?], offset: ?>>) -> memref<?xf64>
  return %y : memref<?xf64>
}
