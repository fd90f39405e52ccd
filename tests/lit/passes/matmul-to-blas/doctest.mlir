// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-matmul-to-blas %s | filecheck %s

// All sizes are known to be small: a function for just these, which needs no zeros to start from. The product
// of integers stays loops.
// CHECK: call @graphc_dblock_4_4_4_nn
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @products(%a: memref<4x4xf64>, %c: memref<4x4xf64>, %i: memref<4x4xi64>, %j: memref<4x4xi64>) {
  %zero = arith.constant 0.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<4x4xf64>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<4x4xf64>, memref<4x4xf64>) outs(%c : memref<4x4xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%i, %i : memref<4x4xi64>, memref<4x4xi64>) outs(%j : memref<4x4xi64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: i64, %y: i64, %s: i64):
    %0 = arith.muli %x, %y : i64
    %1 = arith.addi %s, %0 : i64
    linalg.yield %1 : i64
  }
  return
}
