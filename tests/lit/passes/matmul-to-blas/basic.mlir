// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-matmul-to-blas --split-input-file %s | filecheck %s

// Unknown sizes: a call that chooses between vector code and BLAS. The result is added to.
// CHECK: func.func private @graphc_dgemm
// CHECK-LABEL: @dynamic
// CHECK: %[[ADD:.*]] = arith.constant true
// CHECK: call @graphc_dgemm({{.*}}, %[[ADD]])
// CHECK-NOT: linalg.generic
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @dynamic(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %c: memref<?x?xf64>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// Known to be large, and transposed.
// CHECK-LABEL: @large
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK: call @graphc_sgemm(%[[ONE]], %[[ZERO]]
#a = affine_map<(i, j, k) -> (k, i)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @large(%a: memref<64x64xf32>, %b: memref<64x64xf32>, %c: memref<64x64xf32>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<64x64xf32>, memref<64x64xf32>) outs(%c : memref<64x64xf32>)
      attrs = {graphc.matmul = array<i1: true, false>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %s, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// Known to be small: a function for these sizes, that writes the result without reading it.
// CHECK-LABEL: @small
// CHECK-NOT: linalg.fill
// CHECK: %[[ADD:.*]] = arith.constant false
// CHECK: call @graphc_sblock_5_4_3_nn({{.*}}, %[[ADD]])
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @small(%a: memref<5x3xf32>, %b: memref<3x4xf32>, %c: memref<5x4xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<5x4xf32>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<5x3xf32>, memref<3x4xf32>) outs(%c : memref<5x4xf32>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f32, %y: f32, %s: f32):
    %0 = arith.mulf %x, %y : f32
    %1 = arith.addf %s, %0 : f32
    linalg.yield %1 : f32
  }
  return
}

// -----

// A fill that something else may read, or that is not zero, stays.
// CHECK-LABEL: @read_between
// CHECK: linalg.fill
// CHECK: memref.load
// CHECK: call @graphc_dgemm
// CHECK: linalg.fill
// CHECK: call @graphc_dgemm
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @read_between(%a: memref<?x?xf64>, %c: memref<?x?xf64>, %i: index) -> f64 {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  linalg.fill ins(%zero : f64) outs(%c : memref<?x?xf64>)
  %r = memref.load %c[%i, %i] : memref<?x?xf64>
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.fill ins(%one : f64) outs(%c : memref<?x?xf64>)
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %a : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  return %r : f64
}

// -----

// Rows of larger arrays: address and strides come from the buffer. A column with a stride is a transposed row.
// CHECK-LABEL: @rows
// CHECK: memref.extract_strided_metadata %arg0
// CHECK: llvm.getelementptr
// CHECK: call @graphc_dgemm
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @rows(%a: memref<1x?xf64, strided<[?, ?], offset: ?>>, %b: memref<?x?xf64>,
                %c: memref<1x?xf64, strided<[?, 1], offset: ?>>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<1x?xf64, strided<[?, ?], offset: ?>>, memref<?x?xf64>)
      outs(%c : memref<1x?xf64, strided<[?, 1], offset: ?>>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// Loops: an outer product, a dot product, and a result whose rows are not contiguous.
// CHECK-LABEL: @loops
// CHECK-NOT: call
// CHECK-COUNT-3: linalg.generic
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @loops(%a: memref<?x1xf64>, %b: memref<1x?xf64>, %c: memref<?x?xf64>, %d: memref<1x1xf64>,
                 %e: memref<?x?xf64, strided<[?, ?]>>) {
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x1xf64>, memref<1x?xf64>) outs(%c : memref<?x?xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %a : memref<1x?xf64>, memref<?x1xf64>) outs(%d : memref<1x1xf64>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%c, %c : memref<?x?xf64>, memref<?x?xf64>) outs(%e : memref<?x?xf64, strided<[?, ?]>>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: f64, %y: f64, %s: f64):
    %0 = arith.mulf %x, %y : f64
    %1 = arith.addf %s, %0 : f64
    linalg.yield %1 : f64
  }
  return
}

// -----

// A batch is a loop over calls.
// CHECK-LABEL: @batch
// CHECK: scf.for
// CHECK: call @graphc_zgemm
#a = affine_map<(l, i, j, k) -> (l, i, k)>
#b = affine_map<(l, i, j, k) -> (l, k, j)>
#c = affine_map<(l, i, j, k) -> (l, i, j)>
func.func @batch(%a: memref<?x?x?xcomplex<f64>>, %b: memref<?x?x?xcomplex<f64>>, %c: memref<?x?x?xcomplex<f64>>) {
  linalg.generic {indexing_maps = [#a, #b, #c],
                  iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<?x?x?xcomplex<f64>>, memref<?x?x?xcomplex<f64>>) outs(%c : memref<?x?x?xcomplex<f64>>)
      attrs = {graphc.matmul = array<i1: false, false>} {
  ^bb0(%x: complex<f64>, %y: complex<f64>, %s: complex<f64>):
    %0 = complex.mul %x, %y : complex<f64>
    %1 = complex.add %s, %0 : complex<f64>
    linalg.yield %1 : complex<f64>
  }
  return
}

// -----

// A loop multiplies vectors with an argument, which is copied to where a line of the cache begins unless it
// begins there, or the steps are few. Not one that is written.
// CHECK-LABEL: @recurrence
// CHECK: %[[COPY:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x32xf64>
// CHECK: %[[PLACE:.*]] = memref.extract_aligned_pointer_as_index %arg0
// CHECK: %[[STAYS:.*]] = arith.ori
// CHECK: scf.if %[[STAYS]]
// CHECK: } else {
// CHECK: memref.copy %arg0, %[[COPY]]
// CHECK: %[[OTHER:.*]] = memref.extract_aligned_pointer_as_index %[[COPY]]
// CHECK: arith.select %[[STAYS]], %[[PLACE]], %[[OTHER]]
// CHECK-NOT: memref.alloc
// CHECK: scf.for
// CHECK-COUNT-2: call @graphc_dgemm
// CHECK-LABEL: @written
// CHECK-NOT: memref.alloc
// Rows that are no multiple of a line begin with one in the copy, wherever the matrix begins.
// CHECK-LABEL: @odd_rows
// CHECK: %[[COPY:.*]] = memref.alloc() {alignment = 64 : i64} : memref<32x40xf64>
// CHECK-NOT: arith.andi
// CHECK: scf.if
// CHECK: } else {
// CHECK: memref.load %arg0
// CHECK: memref.store %{{.*}}, %[[COPY]]
// CHECK: %[[STRIDE:.*]] = arith.select %{{.*}}, %c33, %c40
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[STRIDE]]
// CHECK: scf.for
// CHECK: call @graphc_dgemm{{.*}}, %[[NUMBER]],
#a = affine_map<(j, k) -> (k)>
#b = affine_map<(j, k) -> (k, j)>
#c = affine_map<(j, k) -> (j)>
func.func @recurrence(%w: memref<32x32xf64>, %x: memref<32xf64>, %y: memref<32xf64>, %n: index) -> f64 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f64
  %last = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (f64) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
        ins(%x, %w : memref<32xf64>, memref<32x32xf64>) outs(%y : memref<32xf64>)
        attrs = {graphc.matmul = array<i1: false, false>} {
    ^bb0(%p: f64, %q: f64, %t: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %t, %0 : f64
      linalg.yield %1 : f64
    }
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
        ins(%y, %w : memref<32xf64>, memref<32x32xf64>) outs(%x : memref<32xf64>)
        attrs = {graphc.matmul = array<i1: false, false>} {
    ^bb0(%p: f64, %q: f64, %t: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %t, %0 : f64
      linalg.yield %1 : f64
    }
    %new = memref.load %y[%zero] : memref<32xf64>
    scf.yield %new : f64
  }
  return %last : f64
}
func.func @written(%w: memref<32x32xf64>, %x: memref<32xf64>, %y: memref<32xf64>, %n: index) -> f64 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f64
  %last = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (f64) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
        ins(%x, %w : memref<32xf64>, memref<32x32xf64>) outs(%y : memref<32xf64>)
        attrs = {graphc.matmul = array<i1: false, false>} {
    ^bb0(%p: f64, %q: f64, %t: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %t, %0 : f64
      linalg.yield %1 : f64
    }
    %new = memref.load %y[%zero] : memref<32xf64>
    memref.store %new, %w[%zero, %zero] : memref<32x32xf64>
    scf.yield %new : f64
  }
  return %last : f64
}
func.func @odd_rows(%w: memref<32x33xf64>, %x: memref<32xf64>, %y: memref<33xf64>, %n: index) -> f64 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f64
  %last = scf.for %i = %zero to %n step %one iter_args(%s = %start) -> (f64) {
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
        ins(%x, %w : memref<32xf64>, memref<32x33xf64>) outs(%y : memref<33xf64>)
        attrs = {graphc.matmul = array<i1: false, false>} {
    ^bb0(%p: f64, %q: f64, %t: f64):
      %0 = arith.mulf %p, %q : f64
      %1 = arith.addf %t, %0 : f64
      linalg.yield %1 : f64
    }
    %new = memref.load %y[%zero] : memref<33xf64>
    memref.store %new, %x[%zero] : memref<32xf64>
    scf.yield %new : f64
  }
  return %last : f64
}
