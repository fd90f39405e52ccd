// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-constants --split-input-file %s | filecheck %s

// Integers, with their signs, and arrays of several axes.
// CHECK-LABEL: gpu.module @kernels
// CHECK: arith.constant -6 : i8
// CHECK: arith.constant 7 : i8
memref.global "private" constant @bytes : memref<1x2xi8> = dense<[[-6, 7]]>
func.func @bytes_(%y: memref<1x2xi8>) {
  %x = memref.get_global @bytes : memref<1x2xi8>
  memref.copy %x, %y : memref<1x2xi8> to memref<1x2xi8>
  return
}

// -----

// All elements are one number, which is not finite.
// CHECK-LABEL: gpu.module @kernels
// CHECK-COUNT-2: arith.constant 0x7C00 : f16
memref.global "private" constant @all : memref<2xf16> = dense<0x7C00>
func.func @all_(%y: memref<2xf16>) {
  %x = memref.get_global @all : memref<2xf16>
  memref.copy %x, %y : memref<2xf16> to memref<2xf16>
  return
}
