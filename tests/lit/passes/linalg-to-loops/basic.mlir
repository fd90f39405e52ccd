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

// -----

// What is read at indices is read in the loop that finds the smallest and the largest of them.
// CHECK-LABEL: @gather
// CHECK: memref.alloca
// CHECK: %[[SIZE:.*]] = memref.dim %arg0
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK-DAG: arith.minsi
// CHECK-DAG: arith.maxsi
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[AT:.*]], %[[SIZE]]
// CHECK: scf.if %[[IN]]
// CHECK-NEXT: memref.load %arg0[%[[AT]]]
// CHECK: else
// CHECK: memref.store
// CHECK: scf.for
// CHECK: graphc.check
// CHECK-NOT: scf.for
// CHECK: return
#vector = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>
func.func @gather(%x: memref<?xf64>, %i: memref<?xi64>, %y: memref<?xf64>) {
  %low = memref.alloc() : memref<i64>
  %high = memref.alloc() : memref<i64>
  linalg.generic {indexing_maps = [#vector, #scalar, #scalar], iterator_types = ["reduction"]}
      ins(%i : memref<?xi64>) outs(%low, %high : memref<i64>, memref<i64>) {
  ^bb0(%a: i64, %b: i64, %c: i64):
    %0 = arith.minsi %b, %a : i64
    %1 = arith.maxsi %c, %a : i64
    linalg.yield %0, %1 : i64, i64
  }
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf64>
  %largest = memref.load %high[] : memref<i64>
  %given = arith.index_cast %largest : i64 to index
  %fits = arith.cmpi slt, %given, %n : index
  "graphc.check"(%fits, %given, %n) {error = "IndexError", message = "{given}"} : (i1, index, index) -> ()
  linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%i : memref<?xi64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: i64, %b: f64):
    %at = arith.index_cast %a : i64 to index
    %v = memref.load %x[%at] : memref<?xf64>
    linalg.yield %v : f64
  }
  return
}

// -----

// The result is an argument with contents, which an error must not change.
// CHECK-LABEL: @into_an_argument
// CHECK: graphc.check
// CHECK: scf.for
// CHECK: return
#vector = affine_map<(i) -> (i)>
#scalar = affine_map<(i) -> ()>
func.func @into_an_argument(%x: memref<?xf64>, %i: memref<?xi64>, %y: memref<?xf64>, %s: memref<f64>) {
  %low = memref.alloc() : memref<i64>
  %high = memref.alloc() : memref<i64>
  %c0 = arith.constant 0 : index
  %first = memref.load %y[%c0] : memref<?xf64>
  memref.store %first, %s[] : memref<f64>
  linalg.generic {indexing_maps = [#vector, #scalar, #scalar], iterator_types = ["reduction"]}
      ins(%i : memref<?xi64>) outs(%low, %high : memref<i64>, memref<i64>) {
  ^bb0(%a: i64, %b: i64, %c: i64):
    %0 = arith.minsi %b, %a : i64
    %1 = arith.maxsi %c, %a : i64
    linalg.yield %0, %1 : i64, i64
  }
  %n = memref.dim %x, %c0 : memref<?xf64>
  %largest = memref.load %high[] : memref<i64>
  %given = arith.index_cast %largest : i64 to index
  %fits = arith.cmpi slt, %given, %n : index
  "graphc.check"(%fits, %given, %n) {error = "IndexError", message = "{given}"} : (i1, index, index) -> ()
  linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%i : memref<?xi64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: i64, %b: f64):
    %at = arith.index_cast %a : i64 to index
    %v = memref.load %x[%at] : memref<?xf64>
    linalg.yield %v : f64
  }
  return
}

// -----

// Bools are bytes in memory and bits in registers.
// CHECK-LABEL: @all
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (i1)
// CHECK: scf.yield {{.*}} : i1
// CHECK: arith.extui
// CHECK: memref.store
#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> ()>
func.func @all(%x: memref<?xi8>, %y: memref<i8>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction"]}
      ins(%x : memref<?xi8>) outs(%y : memref<i8>) {
  ^bb0(%a: i8, %b: i8):
    %zero = arith.constant 0 : i8
    %0 = arith.cmpi ne, %a, %zero : i8
    %1 = arith.cmpi ne, %b, %zero : i8
    %2 = arith.andi %1, %0 : i1
    %3 = arith.extui %2 : i1 to i8
    linalg.yield %3 : i8
  }
  return
}

// -----

// The loop over two elements is not the innermost one, as functions take longer than strides: rows are, in blocks.
// CHECK-LABEL: @pairs
// CHECK: scf.for %[[B:.*]] = {{.*}} step %c512
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c2
// CHECK: memref.load %{{.*}}[%[[J]]]
// CHECK: scf.for %[[I:.*]] = %[[B]] to
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]], %[[J]]]
#row = affine_map<(i, j) -> (i)>
#two = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
func.func @pairs(%x: memref<?xf64>, %c: memref<2xf64>, %y: memref<?x2xf64>) {
  linalg.generic {indexing_maps = [#row, #two, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : memref<?xf64>, memref<2xf64>) outs(%y : memref<?x2xf64>) {
  ^bb0(%a: f64, %b: f64, %old: f64):
    %0 = arith.addf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = math.log1p %1 : f64
    %3 = math.erf %2 : f64
    linalg.yield %3 : f64
  }
  return
}

// -----

// A short body is: LLVM unrolls the inner loop, and vectorises the outer one.
// CHECK-LABEL: @unrolled
// CHECK-NOT: step %c512
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
#row = affine_map<(i, j) -> (i)>
#two = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
func.func @unrolled(%x: memref<?xf64>, %c: memref<2xf64>, %y: memref<?x2xf64>) {
  linalg.generic {indexing_maps = [#row, #two, #both], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : memref<?xf64>, memref<2xf64>) outs(%y : memref<?x2xf64>) {
  ^bb0(%a: f64, %b: f64, %old: f64):
    %0 = arith.addf %a, %b : f64
    %1 = math.exp %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// With functions, sums along five elements add columns, and sums of five columns are in registers.
// CHECK-LABEL: @row_sums
// CHECK: scf.for %{{.*}} step %c512
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c5
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.load %{{.*}}[%[[I]], %[[J]]]
// CHECK: math.exp
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK-LABEL: @column_sums
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c5
// CHECK: %[[SUM:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c200{{.*}} iter_args
// CHECK: math.exp
// CHECK: scf.yield
// CHECK: memref.store %[[SUM]], %{{.*}}[%[[J]]]
// CHECK-LABEL: @whole_sum
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c5{{.*}} iter_args
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c200{{.*}} iter_args
// CHECK: math.exp
#row = affine_map<(i, j) -> (i)>
#two = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>
func.func @row_sums(%x: memref<200x5xf64>, %c: memref<5xf64>, %y: memref<200xf64>) {
  linalg.generic {indexing_maps = [#both, #two, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %c : memref<200x5xf64>, memref<5xf64>) outs(%y : memref<200xf64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %0 = arith.addf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = math.log1p %1 : f64
    %3 = math.erf %2 : f64
    %4 = arith.addf %sum, %3 : f64
    linalg.yield %4 : f64
  }
  return
}
func.func @column_sums(%x: memref<200x5xf64>, %c: memref<5xf64>, %y: memref<5xf64>) {
  linalg.generic {indexing_maps = [#both, #two, #two], iterator_types = ["reduction", "parallel"]}
      ins(%x, %c : memref<200x5xf64>, memref<5xf64>) outs(%y : memref<5xf64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %0 = arith.addf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = math.log1p %1 : f64
    %3 = math.erf %2 : f64
    %4 = arith.addf %sum, %3 : f64
    linalg.yield %4 : f64
  }
  return
}
func.func @whole_sum(%x: memref<200x5xf64>, %c: memref<5xf64>, %y: memref<f64>) {
  linalg.generic {indexing_maps = [#both, #two, #none], iterator_types = ["reduction", "reduction"]}
      ins(%x, %c : memref<200x5xf64>, memref<5xf64>) outs(%y : memref<f64>) {
  ^bb0(%a: f64, %b: f64, %sum: f64):
    %0 = arith.addf %a, %b : f64
    %1 = math.exp %0 : f64
    %2 = math.log1p %1 : f64
    %3 = math.erf %2 : f64
    %4 = arith.addf %sum, %3 : f64
    linalg.yield %4 : f64
  }
  return
}

// -----

// What is stored where neighbours lie apart says so; its iterations are independent.
// CHECK-LABEL: @column
// CHECK: scf.for
// CHECK: } {graphc.apart}
// CHECK-LABEL: @side_by_side
// CHECK-NOT: graphc.apart
#same = affine_map<(i) -> (i)>
func.func @column(%x: memref<?xf64>, %y: memref<?xf64, strided<[?], offset: ?>>) {
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%x : memref<?xf64>) outs(%y : memref<?xf64, strided<[?], offset: ?>>) {
  ^bb0(%a: f64, %b: f64):
    %0 = math.exp %a : f64
    linalg.yield %0 : f64
  }
  return
}
func.func @side_by_side(%x: memref<?xf64, strided<[?]>>, %y: memref<?xf64, strided<[1], offset: ?>>) {
  linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%x : memref<?xf64, strided<[?]>>) outs(%y : memref<?xf64, strided<[1], offset: ?>>) {
  ^bb0(%a: f64, %b: f64):
    %0 = math.exp %a : f64
    linalg.yield %0 : f64
  }
  return
}

// -----

// The elements that an update stores are computed where it stores them, past the copy of the others.
// CHECK-LABEL: @update
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.load %arg0
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.addi
// CHECK-NEXT: memref.store %{{.*}}, %arg2
#vector = affine_map<(i) -> (i)>
func.func @update(%x: memref<?xf64>, %old: memref<?xf64>, %y: memref<?xf64>, %first: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %new = memref.alloc(%n) : memref<?xf64>
  linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%x : memref<?xf64>) outs(%new : memref<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = math.exp %a : f64
    linalg.yield %0 : f64
  }
  linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%old : memref<?xf64>) outs(%y : memref<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    linalg.yield %a : f64
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %new[%i] : memref<?xf64>
    %1 = arith.addi %i, %first : index
    memref.store %0, %y[%1] : memref<?xf64>
  }
  return
}

// -----

// Not where another iteration overwrites what an element is made of.
// CHECK-LABEL: @update_of_itself
// CHECK: memref.alloc
#vector = affine_map<(i) -> (i)>
func.func @update_of_itself(%y: memref<?xf64>, %first: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %new = memref.alloc(%n) : memref<?xf64>
  linalg.generic {indexing_maps = [#vector, #vector], iterator_types = ["parallel"]}
      ins(%y : memref<?xf64>) outs(%new : memref<?xf64>) {
  ^bb0(%a: f64, %b: f64):
    %0 = math.exp %a : f64
    linalg.yield %0 : f64
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %new[%i] : memref<?xf64>
    %1 = arith.addi %i, %first : index
    memref.store %0, %y[%1] : memref<?xf64>
  }
  return
}
