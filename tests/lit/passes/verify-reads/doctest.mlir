// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-verify-reads %s | filecheck %s

// CHECK: to_tensor
func.func @f(%x: tensor<3xf64>, %out: memref<3xf64>) {
  %m = memref.alloc() : memref<3xf64>
  bufferization.materialize_in_destination %x in restrict writable %m : (tensor<3xf64>, memref<3xf64>) -> ()
  %v = bufferization.to_tensor %m restrict : memref<3xf64> to tensor<3xf64>
  bufferization.materialize_in_destination %v in restrict writable %out : (tensor<3xf64>, memref<3xf64>) -> ()
  return
}
