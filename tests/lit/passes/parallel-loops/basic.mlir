// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-parallel-loops --split-input-file %s | filecheck %s

// Rows: a view of the memory is made again in the body, which gets the memory as a whole.
// CHECK: func.func private @graphc_split_0(index, index, index, index, index, memref<?x?xf64>, memref<?xi8>, index)
// CHECK-LABEL: func.func @rows
// CHECK-NOT: scf.for
// CHECK: call @graphc_split_0(%{{.*}}, %arg2, %{{.*}}, %{{.*}}, %arg3, %arg0, %{{.*}}, %arg2)
// CHECK-LABEL: func.func private @graphc_body_0
// CHECK: memref.view
// CHECK: scf.for %{{.*}} = %arg0 to %arg1 step
// CHECK: scf.for
func.func private @graphc_buffer(index, index, index) -> memref<?xi8>
func.func @rows(%x: memref<?x?xf64>, %address: index, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %memory = func.call @graphc_buffer(%address, %c0, %n) : (index, index, index) -> memref<?xi8>
  %sums = memref.view %memory[%c0][%n] : memref<?xi8> to memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %sum = scf.for %j = %c0 to %m step %c1 iter_args(%s = %zero) -> f64 {
      %0 = memref.load %x[%i, %j] : memref<?x?xf64>
      %1 = arith.addf %s, %0 : f64
      scf.yield %1 : f64
    }
    memref.store %sum, %sums[%i] : memref<?xf64>
  }
  return
}

// -----

// Blocks of columns: the variable of the inner loop stays between two values of the outer one's.
// CHECK-LABEL: func.func @columns
// CHECK: call @graphc_split_0
func.func @columns(%x: memref<?x?xf64>, %y: memref<?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  scf.for %b = %c0 to %m step %c512 {
    %next = arith.addi %b, %c512 : index
    %end = arith.minsi %next, %m : index
    scf.for %i = %c0 to %n step %c1 {
      scf.for %j = %b to %end step %c1 {
        %0 = memref.load %x[%i, %j] : memref<?x?xf64>
        %1 = memref.load %y[%j] : memref<?xf64>
        %2 = arith.addf %0, %1 : f64
        memref.store %2, %y[%j] : memref<?xf64>
      }
    }
  }
  return
}

// -----

// Each row is found through a subview; a slice of the result is written at an offset.
// CHECK-LABEL: func.func @subviews
// CHECK: call @graphc_split_0
func.func @subviews(%x: memref<?x?xf64>, %y: memref<?xf64>, %n: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %row = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x?xf64> to memref<4xf64, strided<[1], offset: ?>>
    %0 = memref.load %row[%c0] : memref<4xf64, strided<[1], offset: ?>>
    memref.store %0, %row[%c1] : memref<4xf64, strided<[1], offset: ?>>
    %at = arith.addi %i, %k : index
    memref.store %0, %y[%at] : memref<?xf64>
  }
  return
}

// -----

// A batch of products of known sizes, whose results lie as far apart as the call is told.
// CHECK-LABEL: func.func @batch
// CHECK: call @graphc_split_0({{.*}}!llvm.ptr, !llvm.ptr)
func.func private @graphc_dblock_8_8_8_nn(!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1)
  attributes {graphc.helper = {kind = "block product", letter = "d", sizes = array<i64: 8, 8, 8>, transposed = array<i1: false, false>}}
func.func @batch(%x: memref<?x8x8xf64>, %y: memref<?x8x8xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : i64
  %c64 = arith.constant 64 : i64
  %false = arith.constant false
  %x0 = memref.extract_aligned_pointer_as_index %x : memref<?x8x8xf64> -> index
  %x1 = arith.index_cast %x0 : index to i64
  %x2 = llvm.inttoptr %x1 : i64 to !llvm.ptr
  %y0 = memref.extract_aligned_pointer_as_index %y : memref<?x8x8xf64> -> index
  %y1 = arith.index_cast %y0 : index to i64
  %y2 = llvm.inttoptr %y1 : i64 to !llvm.ptr
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.index_cast %i : index to i64
    %1 = arith.muli %0, %c64 : i64
    %a = llvm.getelementptr %x2[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    %c = llvm.getelementptr %y2[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f64
    func.call @graphc_dblock_8_8_8_nn(%a, %c8, %a, %c8, %c, %c8, %false) : (!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> ()
  }
  return
}

// -----

// A batch of products of any sizes: each writes the matrix at its place in the batch, which has two dimensions.
// CHECK-LABEL: func.func @products
// CHECK: call @graphc_split_products_0({{.*}}!llvm.ptr
// A product that is written to the same place again and again stays.
// CHECK: scf.for
// CHECK: call @graphc_dgemm
// CHECK-LABEL: func.func private @graphc_body_0
func.func private @graphc_dgemm(i64, i64, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1)
  attributes {graphc.helper = {kind = "product", letter = "d", packs = false}}
func.func @products(%x: memref<?x?x?x?xf64>, %y: memref<?x?x?x?xf64>, %b: index, %c: index, %s: i64, %t: i64, %n: i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %false = arith.constant false
  %x0 = memref.extract_aligned_pointer_as_index %x : memref<?x?x?x?xf64> -> index
  %x1 = arith.index_cast %x0 : index to i64
  %x2 = llvm.inttoptr %x1 : i64 to !llvm.ptr
  %y0 = memref.extract_aligned_pointer_as_index %y : memref<?x?x?x?xf64> -> index
  %y1 = arith.index_cast %y0 : index to i64
  %y2 = llvm.inttoptr %y1 : i64 to !llvm.ptr
  scf.for %i = %c0 to %b step %c1 {
    scf.for %j = %c0 to %c step %c1 {
      %i0 = arith.index_cast %i : index to i64
      %i1 = arith.muli %i0, %s : i64
      %j0 = arith.index_cast %j : index to i64
      %j1 = arith.muli %j0, %t : i64
      %at = arith.addi %i1, %j1 : i64
      %from = llvm.getelementptr %x2[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f64
      %to = llvm.getelementptr %y2[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f64
      func.call @graphc_dgemm(%zero, %zero, %n, %n, %n, %from, %n, %from, %n, %to, %n, %false) : (i64, i64, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> ()
    }
  }
  scf.for %i = %c0 to %b step %c1 {
    func.call @graphc_dgemm(%zero, %zero, %n, %n, %n, %x2, %n, %x2, %n, %y2, %n, %false) : (i64, i64, i64, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, i1) -> ()
  }
  return
}

// -----

// Every third element, and elements from the last one on.
// CHECK-LABEL: func.func @strided
// CHECK: call @graphc_split_0
// CHECK: call @graphc_split_1
// CHECK-NOT: scf.for
// CHECK: return
func.func @strided(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %last = arith.subi %n, %c1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %y[%i] : memref<?xf64>
    %1 = arith.muli %i, %c3 : index
    %2 = arith.addi %1, %c1 : index
    %3 = memref.load %x[%2] : memref<?xf64>
    %4 = arith.addf %0, %3 : f64
    memref.store %4, %x[%2] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %y[%i] : memref<?xf64>
    %1 = arith.subi %last, %i : index
    memref.store %0, %x[%1] : memref<?xf64>
  }
  return
}

// -----

// Iterations that depend on each other, or might: the next element, any element, a call, a carried value, a
// buffer that is reached in two ways.
// CHECK-NOT: graphc_split
func.func private @f()
func.func @dependent(%x: memref<?xf64>, %p: memref<?xindex>, %m: memref<?x?xf64>, %n: index) -> f64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    %next = arith.addi %i, %c1 : index
    %0 = memref.load %x[%i] : memref<?xf64>
    memref.store %0, %x[%next] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %at = memref.load %p[%i] : memref<?xindex>
    memref.store %zero, %x[%at] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    func.call @f() : () -> ()
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f64 {
    %0 = memref.load %x[%i] : memref<?xf64>
    %1 = arith.addf %a, %0 : f64
    scf.yield %1 : f64
  }
  %flat = memref.collapse_shape %m [[0, 1]] : memref<?x?xf64> into memref<?xf64>
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %m[%i, %c0] : memref<?x?xf64>
    memref.store %0, %flat[%i] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      memref.store %zero, %x[%j] : memref<?xf64>
    }
  }
  return %s : f64
}

// -----

// Multiples that meet: of 0, of a number that may be 0, of several numbers, and differences of both signs.
// CHECK-NOT: graphc_split
func.func @meeting(%x: memref<?xf64>, %n: index, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.muli %i, %c0 : index
    memref.store %zero, %x[%0] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.muli %i, %k : index
    memref.store %zero, %x[%0] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.muli %i, %c2 : index
    %1 = memref.load %x[%i] : memref<?xf64>
    memref.store %1, %x[%0] : memref<?xf64>
  }
  scf.for %i = %c0 to %n step %c1 {
    %0 = arith.subi %i, %k : index
    %1 = arith.subi %k, %i : index
    %2 = memref.load %x[%0] : memref<?xf64>
    memref.store %2, %x[%1] : memref<?xf64>
  }
  return
}

// -----

// Known to be short.
// CHECK-LABEL: func.func @short
// CHECK-NOT: graphc_split
// CHECK: return
func.func @short(%x: memref<100xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %zero = arith.constant 0.0 : f64
  scf.for %i = %c0 to %c100 step %c1 {
    memref.store %zero, %x[%i] : memref<100xf64>
  }
  return
}

// -----

// Parts of a range: each iteration of the outer loop has positions of its own.
// CHECK-LABEL: func.func @parts
// CHECK: call @graphc_split_0
// CHECK-NOT: scf.for
// CHECK: return
func.func @parts(%x: memref<?xf64>, %y: memref<?xf64>, %sums: memref<?xf64>, %count: index, %length: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant 0.0 : f64
  %n = memref.dim %x, %c0 : memref<?xf64>
  scf.for %part = %c0 to %count step %c1 {
    %first = arith.muli %part, %length : index
    %next = arith.addi %first, %length : index
    %past = arith.minsi %next, %n : index
    %s = scf.for %j = %first to %past step %c512 iter_args(%a = %zero) -> f64 {
      %block = arith.addi %j, %c512 : index
      %end = arith.minsi %block, %past : index
      %t = scf.for %i = %j to %end step %c1 iter_args(%b = %a) -> f64 {
        %v = memref.load %x[%i] : memref<?xf64>
        memref.store %v, %y[%i] : memref<?xf64>
        %c = arith.addf %b, %v : f64
        scf.yield %c : f64
      }
      scf.yield %t : f64
    }
    memref.store %s, %sums[%part] : memref<?xf64>
  }
  return
}

// -----

// A part that ends after the beginning of the next one, and one whose beginning lies elsewhere.
// CHECK-LABEL: func.func @overlapping
// CHECK-NOT: graphc_split
func.func @overlapping(%x: memref<?xf64>, %count: index, %length: index, %other: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  scf.for %part = %c0 to %count step %c1 {
    %first = arith.muli %part, %length : index
    %past = arith.addi %first, %other : index
    scf.for %i = %first to %past step %c1 {
      memref.store %zero, %x[%i] : memref<?xf64>
    }
  }
  scf.for %part = %c0 to %count step %c1 {
    %first = arith.muli %part, %length : index
    %begin = arith.addi %first, %c1 : index
    %past = arith.addi %first, %length : index
    scf.for %i = %first to %past step %c1 {
      scf.for %j = %begin to %past step %c1 {
        memref.store %zero, %x[%j] : memref<?xf64>
      }
    }
  }
  return
}
