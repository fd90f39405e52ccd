// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-linalg-to-loops --split-input-file %s | filecheck %s

// Contiguous dimensions collapse: one loop for a matrix.
// CHECK-LABEL: @flat
// CHECK-COUNT-2: memref.collapse_shape
// CHECK: scf.for
// CHECK-NOT: scf.for
#id = affine_map<(i, j) -> (i, j)>
func.func @flat(%x: memref<?x?xf64>, %y: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<?x?xf64>) outs(%y : memref<?x?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.negf %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// A row sum keeps its accumulator in a register and adds blocks of 4096.
// CHECK-LABEL: @rows
// CHECK: scf.for
// CHECK: scf.for {{.*}} step %c4096{{.*}} iter_args
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.load
// CHECK: arith.addf {{.*}} fastmath<{{.*}}reassoc
// CHECK-NOT: memref.store
// CHECK: scf.yield
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (i)>
func.func @rows(%x: memref<?x?xf64>, %y: memref<?xf64>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x?xf64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.addf %b, %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// A column sum adds whole rows, a block of columns at a time: the inner loop runs along memory.
// CHECK-LABEL: @columns
// CHECK: scf.for %[[B:.*]] = {{.*}} step %c512
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] = %[[B]] to
// CHECK-NOT: iter_args
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[J]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[J]]]
#in = affine_map<(i, j) -> (i, j)>
#out = affine_map<(i, j) -> (j)>
func.func @columns(%x: memref<?x?xf64>, %y: memref<?xf64>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<?x?xf64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.addf %b, %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// A long reduction to one element: at most 64 parts of whole blocks, whose results are combined in order.
// CHECK-LABEL: @total
// CHECK: %[[PARTS:.*]] = memref.alloca() : memref<64xf64>
// CHECK: %[[COUNT:.*]] = arith.divui
// CHECK: scf.for %[[P:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: scf.for {{.*}} step %c4096{{.*}} iter_args
// CHECK: memref.store %{{.*}}, %[[PARTS]][%[[P]]]
// CHECK: scf.for %[[Q:.*]] = %{{.*}} to %[[COUNT]] {{.*}} iter_args
// CHECK-NEXT: memref.load %[[PARTS]][%[[Q]]]
#vector = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>
func.func @total(%x: memref<?xf64>, %y: memref<f64>) {
  linalg.generic {indexing_maps = [#vector, #scalar], iterator_types = ["reduction"]}
      ins(%x : memref<?xf64>) outs(%y : memref<f64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = arith.addf %b, %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// CHECK-LABEL: @fill
// CHECK: memref.collapse_shape
// CHECK: scf.for
// CHECK-NEXT: memref.store
func.func @fill(%x: memref<?x?xf64>, %v: f64) {
  linalg.fill ins(%v : f64) outs(%x : memref<?x?xf64>)
  return
}
