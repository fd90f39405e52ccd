// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-verify-reads --split-input-file %s | filecheck %s

// Rows of one buffer, of unknown sizes: the second is written while the first is still to be read.
// CHECK-LABEL: @rows
// CHECK: materialize_in_destination
func.func @rows(%n: index, %x: tensor<?xf64>, %out: memref<?xf64>) {
  %m = memref.alloc(%n) : memref<2x?xf64>
  %a = memref.reinterpret_cast %m to offset: [0], sizes: [%n], strides: [1] : memref<2x?xf64> to memref<?xf64, strided<[1]>>
  %b = memref.reinterpret_cast %m to offset: [%n], sizes: [%n], strides: [1] : memref<2x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  bufferization.materialize_in_destination %x in restrict writable %a : (tensor<?xf64>, memref<?xf64, strided<[1]>>) -> ()
  %v = bufferization.to_tensor %a restrict : memref<?xf64, strided<[1]>> to tensor<?xf64>
  bufferization.materialize_in_destination %x in restrict writable %b : (tensor<?xf64>, memref<?xf64, strided<[1], offset: ?>>) -> ()
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<?xf64>, memref<?xf64>) -> ()
  return
}

// -----

// A loop rotates its rows: what an iteration writes is none of those that it reads.
// CHECK-LABEL: @rotating
// CHECK: scf.yield
func.func @rotating(%n: index, %out: memref<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<3xf64>
  %b = memref.alloc() : memref<3xf64>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%old = %a, %new = %b) -> (memref<3xf64>, memref<3xf64>) {
    %v = bufferization.to_tensor %old restrict : memref<3xf64> to tensor<3xf64>
    bufferization.materialize_in_destination %v in restrict writable %new : (tensor<3xf64>, memref<3xf64>) -> ()
    scf.yield %new, %old : memref<3xf64>, memref<3xf64>
  }
  memref.copy %r#0, %out : memref<3xf64> to memref<3xf64>
  return
}

// -----

// Two iterations write the third row and the first one; the second one is read after the loop.
// CHECK-LABEL: @few
// CHECK: scf.yield
func.func @few(%x: tensor<3xf64>, %out: memref<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = memref.alloc() : memref<3x3xf64>
  %a = memref.subview %m[0, 0] [1, 3] [1, 1] : memref<3x3xf64> to memref<3xf64, strided<[1]>>
  %b = memref.subview %m[1, 0] [1, 3] [1, 1] : memref<3x3xf64> to memref<3xf64, strided<[1], offset: 3>>
  %c = memref.subview %m[2, 0] [1, 3] [1, 1] : memref<3x3xf64> to memref<3xf64, strided<[1], offset: 6>>
  %1 = memref.cast %a : memref<3xf64, strided<[1]>> to memref<3xf64, strided<[1], offset: ?>>
  %2 = memref.cast %b : memref<3xf64, strided<[1], offset: 3>> to memref<3xf64, strided<[1], offset: ?>>
  %3 = memref.cast %c : memref<3xf64, strided<[1], offset: 6>> to memref<3xf64, strided<[1], offset: ?>>
  %v = bufferization.to_tensor %b restrict : memref<3xf64, strided<[1], offset: 3>> to tensor<3xf64>
  %r:3 = scf.for %t = %c0 to %c2 step %c1 iter_args(%p = %1, %q = %2, %new = %3) -> (memref<3xf64, strided<[1], offset: ?>>, memref<3xf64, strided<[1], offset: ?>>, memref<3xf64, strided<[1], offset: ?>>) {
    bufferization.materialize_in_destination %x in restrict writable %new : (tensor<3xf64>, memref<3xf64, strided<[1], offset: ?>>) -> ()
    scf.yield %q, %new, %p : memref<3xf64, strided<[1], offset: ?>>, memref<3xf64, strided<[1], offset: ?>>, memref<3xf64, strided<[1], offset: ?>>
  }
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
  return
}

// -----

// A row is written when its size has been checked.
// CHECK-LABEL: @checked
// CHECK: scf.yield
func.func @checked(%n: index, %k: index, %x: tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%k) : memref<?xf64>
  %b = memref.alloc(%k) : memref<?xf64>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%old = %a, %new = %b) -> (memref<?xf64>, memref<?xf64>) {
    %given = arith.addi %t, %c1 : index
    %fits = arith.cmpi eq, %given, %k : index
    "graphc.check"(%fits, %given, %k) {error = "ValueError", message = "rows go on with {given}"} : (i1, index, index) -> ()
    %row = tensor.extract_slice %x[0] [%given] [1] : tensor<?xf64> to tensor<?xf64>
    bufferization.materialize_in_destination %row in restrict writable %new : (tensor<?xf64>, memref<?xf64>) -> ()
    scf.yield %new, %old : memref<?xf64>, memref<?xf64>
  }
  return
}

// -----

// The other branch writes; so does an operation that reads each element where it writes it.
// CHECK-LABEL: @branches
// CHECK: linalg.generic
func.func @branches(%n: i1, %x: tensor<3xf64>, %out: memref<3xf64>) {
  %a = memref.alloc() : memref<3xf64>
  %v = bufferization.to_tensor %a restrict : memref<3xf64> to tensor<3xf64>
  scf.if %n {
    bufferization.materialize_in_destination %x in restrict writable %a : (tensor<3xf64>, memref<3xf64>) -> ()
  } else {
    bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
  }
  %w = bufferization.to_tensor %a restrict : memref<3xf64> to tensor<3xf64>
  %z = bufferization.to_tensor %a restrict writable : memref<3xf64> to tensor<3xf64>
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%w : tensor<3xf64>) outs(%z : tensor<3xf64>) {
  ^bb0(%in: f64, %to: f64):
    %e = math.exp %in : f64
    linalg.yield %e : f64
  } -> tensor<3xf64>
  bufferization.materialize_in_destination %s in restrict writable %a : (tensor<3xf64>, memref<3xf64>) -> ()
  return
}
