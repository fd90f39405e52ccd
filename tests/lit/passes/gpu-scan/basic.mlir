// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-scan --canonicalize --cse --split-input-file %s | filecheck %s

// Two buffers take turns; what is left in the end goes to an array. An array of one iteration is a register.
// CHECK: gpu.func @steps_0
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> ({{.*}}f64)
// CHECK: math.sqrt
// CHECK: math.absf
// CHECK: func.func @turns
// CHECK: %[[R:.*]] = memref.alloc(%{{.*}}) : memref<?xf64>
// CHECK: gpu.launch_func
// CHECK: memref.copy %[[R]]
#id = affine_map<(i) -> (i)>
func.func @turns(%two: memref<2x?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %two, %c1 : memref<2x?xf64>
  %p = memref.subview %two[0, 0] [1, %m] [1, 1] : memref<2x?xf64> to memref<?xf64, strided<[1]>>
  %a = memref.cast %p : memref<?xf64, strided<[1]>> to memref<?xf64, strided<[1], offset: ?>>
  %b = memref.subview %two[1, 0] [1, %m] [1, 1] : memref<2x?xf64> to memref<?xf64, strided<[1], offset: ?>>
  %last:2 = scf.for %t = %c0 to %n step %c1 iter_args(%s = %a, %w = %b)
      -> (memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>) {
    %tmp = memref.alloc(%m) : memref<?xf64>
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%s : memref<?xf64, strided<[1], offset: ?>>) outs(%tmp : memref<?xf64>) {
    ^bb0(%x: f64, %o: f64):
      %0 = math.sqrt %x : f64
      linalg.yield %0 : f64
    }
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%tmp : memref<?xf64>) outs(%w : memref<?xf64, strided<[1], offset: ?>>) {
    ^bb0(%x: f64, %o: f64):
      %0 = math.absf %x : f64
      linalg.yield %0 : f64
    }
    scf.yield %w, %s : memref<?xf64, strided<[1], offset: ?>>, memref<?xf64, strided<[1], offset: ?>>
  }
  memref.copy %last#0, %y : memref<?xf64, strided<[1], offset: ?>> to memref<?xf64>
  return
}

// -----

// A state that is read across, or a sum over it, is no work of single elements.
// CHECK-NOT: gpu.func
#id = affine_map<(i, j) -> (i, j)>
#across = affine_map<(i, j) -> (j, i)>
func.func @across(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last:2 = scf.for %t = %c0 to %n step %c1 iter_args(%s = %a, %w = %b) -> (memref<?x?xf64>, memref<?x?xf64>) {
    linalg.generic {indexing_maps = [#across, #id], iterator_types = ["parallel", "parallel"]}
        ins(%s : memref<?x?xf64>) outs(%w : memref<?x?xf64>) {
    ^bb0(%x: f64, %o: f64):
      linalg.yield %x : f64
    }
    scf.yield %w, %s : memref<?x?xf64>, memref<?x?xf64>
  }
  return
}

// -----

// What is left in an array is read under another name: elements in registers would not be there.
// CHECK-NOT: gpu.func
#id = affine_map<(i) -> (i)>
func.func @left_behind(%y: memref<?xf64>, %which: i1, %m: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc(%m) : memref<?xf64>
  %b = memref.alloc(%m) : memref<?xf64>
  %c = arith.select %which, %a, %b : memref<?xf64>
  memref.copy %y, %a : memref<?xf64> to memref<?xf64>
  %last:2 = scf.for %t = %c0 to %n step %c1 iter_args(%r = %a, %w = %b) -> (memref<?xf64>, memref<?xf64>) {
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%r : memref<?xf64>) outs(%w : memref<?xf64>) {
    ^bb0(%x: f64, %o: f64):
      %0 = math.sqrt %x : f64
      linalg.yield %0 : f64
    }
    scf.yield %w, %r : memref<?xf64>, memref<?xf64>
  }
  memref.copy %c, %y : memref<?xf64> to memref<?xf64>
  return
}

// -----

// Buffers of different arrays take turns: an iteration would not know which memory it reads.
// CHECK-NOT: gpu.func
#id = affine_map<(i) -> (i)>
func.func @window(%a: memref<?xf64>, %b: memref<?xf64>, %c: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last:3 = scf.for %t = %c0 to %n step %c1 iter_args(%s = %a, %r = %b, %w = %c)
      -> (memref<?xf64>, memref<?xf64>, memref<?xf64>) {
    linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
        ins(%s, %r : memref<?xf64>, memref<?xf64>) outs(%w : memref<?xf64>) {
    ^bb0(%x: f64, %y: f64, %o: f64):
      %0 = arith.addf %x, %y : f64
      linalg.yield %0 : f64
    }
    scf.yield %r, %w, %s : memref<?xf64>, memref<?xf64>, memref<?xf64>
  }
  return
}
