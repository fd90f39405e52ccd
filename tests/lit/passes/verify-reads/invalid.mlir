// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-verify-reads --split-input-file --verify-diagnostics %s

// A loop over rows overwrites what is a result after it.
func.func @loop(%n: index, %x: tensor<3xf64>, %out: memref<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<3xf64>
  %b = memref.alloc() : memref<3xf64>
  %v = bufferization.to_tensor %a restrict : memref<3xf64> to tensor<3xf64>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%old = %a, %new = %b) -> (memref<3xf64>, memref<3xf64>) {
    // expected-error @+1 {{overwrites a value that is read later}}
    bufferization.materialize_in_destination %x in restrict writable %new : (tensor<3xf64>, memref<3xf64>) -> ()
    scf.yield %new, %old : memref<3xf64>, memref<3xf64>
  }
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
  return
}

// -----

// So does a store into an array that a tensor is, under another name.
func.func @store(%x: tensor<3xf64>, %y: f64, %out: memref<3xf64>) {
  %c0 = arith.constant 0 : index
  %a = memref.alloc() : memref<3xf64>
  %v = bufferization.to_tensor %a restrict : memref<3xf64> to tensor<3xf64>
  %w = tensor.cast %v : tensor<3xf64> to tensor<?xf64>
  // expected-error @+1 {{overwrites a value that is read later}}
  memref.store %y, %a[%c0] : memref<3xf64>
  %d = memref.cast %out : memref<3xf64> to memref<?xf64>
  bufferization.materialize_in_destination %w in restrict writable %d : (tensor<?xf64>, memref<?xf64>) -> ()
  return
}

// -----

// Values lie in the rows of a joined buffer, from which a loop starts, and one of them is a result, too.
func.func @joined_rows(%n: index, %x: tensor<?xf64>, %out: memref<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %size = tensor.dim %x, %c0 : tensor<?xf64>
  %m = memref.alloc(%size) : memref<2x?xf64>
  %row = memref.reinterpret_cast %m to offset: [%size], sizes: [%size], strides: [1] : memref<2x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  bufferization.materialize_in_destination %x in restrict writable %row : (tensor<?xf64>, memref<?xf64, strided<[1], offset: ?>>) -> ()
  %v = bufferization.to_tensor %row restrict : memref<?xf64, strided<[1], offset: ?>> to tensor<?xf64>
  %all = memref.reinterpret_cast %m to offset: [0], sizes: [2, %size], strides: [%size, 1] : memref<2x?xf64> to memref<2x?xf64, strided<[?, 1]>>
  %joined = bufferization.to_tensor %all restrict : memref<2x?xf64, strided<[?, 1]>> to tensor<2x?xf64>
  %rows = bufferization.to_buffer %joined : tensor<2x?xf64> to memref<2x?xf64>
  %known = memref.dim %rows, %c1 : memref<2x?xf64>
  %a = memref.subview %rows[%c0, 0] [1, %known] [1, 1] : memref<2x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  %b = memref.subview %rows[%c1, 0] [1, %known] [1, 1] : memref<2x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  %more = memref.alloc(%size) : memref<1x?xf64>
  %c = memref.subview %more[%c0, 0] [1, %known] [1, 1] : memref<1x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  %r:3 = scf.for %t = %c0 to %n step %c1 iter_args(%p = %a, %q = %b, %new = %c) -> (memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>) {
    %w = bufferization.to_tensor %q restrict : memref<?xf64, strided<[1], offset: ?>> to tensor<?xf64>
    // expected-error @+1 {{overwrites a value that is read later}}
    bufferization.materialize_in_destination %w in restrict writable %new : (tensor<?xf64>, memref<?xf64, strided<[1], offset: ?>>) -> ()
    scf.yield %q, %new, %p : memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>
  }
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<?xf64>, memref<?xf64>) -> ()
  return
}

// -----

// Both operands of a sum are computed where it is wanted.
func.func @two_operands(%x: tensor<3xf64>, %out: memref<6xf64>) {
  %place = memref.reinterpret_cast %out to offset: [3], sizes: [3], strides: [1] : memref<6xf64> to memref<3xf64, strided<[1], offset: 3>>
  %one = bufferization.to_tensor %place restrict writable : memref<3xf64, strided<[1], offset: 3>> to tensor<3xf64>
  %a = linalg.copy ins(%x : tensor<3xf64>) outs(%one : tensor<3xf64>) -> tensor<3xf64>
  %other = bufferization.to_tensor %place restrict writable : memref<3xf64, strided<[1], offset: 3>> to tensor<3xf64>
  // expected-error @+1 {{overwrites a value that is read later}}
  %b = linalg.copy ins(%x : tensor<3xf64>) outs(%other : tensor<3xf64>) -> tensor<3xf64>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%b : tensor<3xf64>) outs(%a : tensor<3xf64>) {
  ^bb0(%in: f64, %to: f64):
    %e = arith.addf %in, %to : f64
    linalg.yield %e : f64
  } -> tensor<3xf64>
  bufferization.materialize_in_destination %sum in restrict writable %place : (tensor<3xf64>, memref<3xf64, strided<[1], offset: 3>>) -> ()
  return
}

// -----

// Parts that have some elements in common; a kernel writes one of them.
func.func @kernel(%out: memref<3xf64>) {
  %m = memref.alloc() : memref<8xf64>
  %a = memref.subview %m[1] [3] [2] : memref<8xf64> to memref<3xf64, strided<[2], offset: 1>>
  %b = memref.subview %m[5] [2] [1] : memref<8xf64> to memref<2xf64, strided<[1], offset: 5>>
  %v = bufferization.to_tensor %a restrict : memref<3xf64, strided<[2], offset: 1>> to tensor<3xf64>
  %to = "graphc.address"(%b) {access = "write"} : (memref<2xf64, strided<[1], offset: 5>>) -> !llvm.ptr
  // expected-error @+1 {{overwrites a value that is read later}}
  func.call @fill(%to) : (!llvm.ptr) -> ()
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
  return
}
func.func private @fill(!llvm.ptr)

// -----

// The row of an iteration is written, and then it is asked whether it fits.
func.func @row_size(%n: index, %k: index, %x: tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%k) : memref<?xf64>
  %b = memref.alloc(%k) : memref<?xf64>
  %r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%old = %a, %new = %b) -> (memref<?xf64>, memref<?xf64>) {
    %given = arith.addi %t, %c1 : index
    %row = tensor.extract_slice %x[0] [%given] [1] : tensor<?xf64> to tensor<?xf64>
    // expected-error @+1 {{writes a row whose size}}
    bufferization.materialize_in_destination %row in restrict writable %new : (tensor<?xf64>, memref<?xf64>) -> ()
    %fits = arith.cmpi eq, %given, %k : index
    "graphc.check"(%fits, %given, %k) {error = "ValueError", message = "rows go on with {given}"} : (i1, index, index) -> ()
    scf.yield %new, %old : memref<?xf64>, memref<?xf64>
  }
  return
}

// -----

// A later iteration reads what an earlier one has overwritten.
func.func @iterations(%n: index, %x: tensor<3xf64>, %out: memref<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<3xf64>
  %v = bufferization.to_tensor %a restrict : memref<3xf64> to tensor<3xf64>
  scf.for %t = %c0 to %n step %c1 {
    bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
    // expected-error @+1 {{overwrites a value that is read later}}
    bufferization.materialize_in_destination %x in restrict writable %a : (tensor<3xf64>, memref<3xf64>) -> ()
  }
  return
}
