// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-unpack-arguments --split-input-file %s | filecheck %s

// Sizes and strides are passed where they are read: here a size that `memref.dim` reads and the stride of
// the rows, as the last one is 1. What is not read of the second buffer is left out.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: memref<?x?xf64>, %[[B:.*]]: memref<?xf64>)
// CHECK-DAG: %[[DA:.*]] = builtin.unrealized_conversion_cast %[[A]] : memref<?x?xf64> to !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK-DAG: %[[PA:.*]] = llvm.extractvalue %[[DA]][1]
// CHECK-DAG: %[[SIZE:.*]] = llvm.extractvalue %[[DA]][3, 0]
// CHECK-DAG: %[[STRIDE:.*]] = llvm.extractvalue %[[DA]][4, 0]
// CHECK-DAG: %[[DB:.*]] = builtin.unrealized_conversion_cast %[[B]]
// CHECK-DAG: %[[PB:.*]] = llvm.extractvalue %[[DB]][1]
// CHECK: call @graphc_part_3(%[[PA]], %[[SIZE]], %[[STRIDE]], %[[PB]]) : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
// Read once for all calls.
// CHECK-NEXT: call @graphc_part_3(%[[PA]], %[[SIZE]], %[[STRIDE]], %[[PB]])
// CHECK: func.func private @graphc_part_3(%[[P:.*]]: !llvm.ptr, %[[N:.*]]: i64, %[[S:.*]]: i64, %[[Q:.*]]: !llvm.ptr)
// CHECK-SAME: graphc.buffers = array<i32: 0, 3>
// CHECK: %[[D0:.*]] = llvm.insertvalue %[[P]], %{{.*}}[1]
// CHECK: %[[D1:.*]] = llvm.insertvalue %[[N]], %[[D0]][3, 0]
// CHECK: %[[D2:.*]] = llvm.insertvalue %[[S]], %[[D1]][4, 0]
// CHECK: builtin.unrealized_conversion_cast %[[D2]]
func.func @main(%a: memref<?x?xf64>, %b: memref<?xf64>) {
  call @graphc_part_3(%a, %b) : (memref<?x?xf64>, memref<?xf64>) -> ()
  call @graphc_part_3(%a, %b) : (memref<?x?xf64>, memref<?xf64>) -> ()
  return
}
func.func private @graphc_part_3(%a: memref<?x?xf64>, %b: memref<?xf64>) attributes {graphc.part} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %a, %c0 : memref<?x?xf64>
  %0 = memref.load %a[%n, %c0] : memref<?x?xf64>
  memref.store %0, %b[%c0] : memref<?xf64>
  return
}

// -----

// A split loop and its body take the same; a call that nobody knows gets all of a buffer but the pointer for
// `free`.
// CHECK-LABEL: func.func @main
// CHECK: call @graphc_split_0(%{{.*}}) : (index, index, index, index, !llvm.ptr, i64, i64, i64) -> ()
// CHECK: func.func private @graphc_split_0(index, index, index, index, !llvm.ptr, i64, i64, i64)
// CHECK: func.func private @graphc_body_0(%{{.*}}: !llvm.ptr, %{{.*}}: index, %{{.*}}: index, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64) -> i64
// CHECK-SAME: graphc.buffers = array<i32: 3>
func.func @main(%a: memref<?xf64>, %n: index) {
  call @graphc_split_0(%n, %n, %n, %n, %a) : (index, index, index, index, memref<?xf64>) -> ()
  return
}
func.func private @graphc_split_0(index, index, index, index, memref<?xf64>)
func.func private @graphc_body_0(%ctx: !llvm.ptr, %lower: index, %upper: index, %a: memref<?xf64>) -> i64 {
  call @other(%a) : (memref<?xf64>) -> ()
  %0 = arith.constant 0 : i64
  return %0 : i64
}
func.func private @other(memref<?xf64>)

// -----

// Offset and strides of other layouts, and what is read of them as such.
// CHECK: func.func private @graphc_part_0(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: func.func private @graphc_part_1(%{{.*}}: !llvm.ptr, %{{.*}}: i64)
func.func private @graphc_part_0(%a: memref<?xf64, strided<[?], offset: ?>>) attributes {graphc.part} {
  %c0 = arith.constant 0 : index
  %0 = memref.load %a[%c0] : memref<?xf64, strided<[?], offset: ?>>
  return
}
func.func private @graphc_part_1(%a: memref<?x?xf64>) attributes {graphc.part} {
  %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %a
      : memref<?x?xf64> -> memref<f64>, index, index, index, index, index
  %view = memref.reinterpret_cast %base to offset: [0], sizes: [%sizes#1], strides: [1]
      : memref<f64> to memref<?xf64>
  %c0 = arith.constant 0 : index
  %0 = memref.load %view[%c0] : memref<?xf64>
  return
}

// -----

// The end of a lifetime is told the bytes that its beginning was told.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[W:.*]]: index, %[[N:.*]]: index)
// CHECK-DAG: %[[BYTES:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK-DAG: %[[P:.*]] = llvm.extractvalue %{{.*}}[1]
// CHECK: call @graphc_end(%[[P]], %[[BYTES]]) : (!llvm.ptr, i64) -> ()
func.func private @graphc_buffer(index, index, index) -> memref<?xi8>
func.func private @graphc_end(memref<?xi8>)
func.func @main(%w: index, %n: index) {
  %0 = call @graphc_buffer(%w, %w, %n) : (index, index, index) -> memref<?xi8>
  call @graphc_end(%0) : (memref<?xi8>) -> ()
  return
}
