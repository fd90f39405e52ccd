// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-linalg-to-loops %s | filecheck %s

// A broadcast row is loaded in the inner loop, a broadcast column once per row.
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[C:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[R:.*]] = memref.load %{{.*}}[%[[J]]]
// CHECK: arith.mulf
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @outer(%c: memref<?xf64>, %r: memref<?xf64>, %y: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#column, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%c, %r : memref<?xf64>, memref<?xf64>) outs(%y : memref<?x?xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %0 = arith.mulf %a, %b : f64
    linalg.yield %0 : f64
  }
  return
}
