// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-profile-operations --split-input-file %s | filecheck %s

// The loop of a scan (n0) is measured inside; the time of its step (n1) is not its own.
// CHECK: graphc.profile = [
// CHECK-SAME: {nodes = [], parent = 0 : i64, what = "function"}
// CHECK-SAME: {nodes = ["n0"], parent = 0 : i64, what = "loop"}
// CHECK-SAME: {nodes = ["n1"], parent = 1 : i64, what = "loop"}
// CHECK: func.func @main
// CHECK: call @graphc_profile_begin()
// CHECK: call @graphc_profile_enter(%c1_i64)
// CHECK-NEXT: scf.for
// CHECK: func.call @graphc_profile_enter(%c2_i64)
// CHECK-NEXT: scf.for
// CHECK: func.call @graphc_profile_leave(%c1_i64
// CHECK-NEXT: }
// CHECK: call @graphc_profile_leave(%c0_i64
// CHECK: call @graphc_profile_leave(%c0_i64
// CHECK-NEXT: return
func.func @main(%y: memref<?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %0 = memref.load %y[%j] : memref<?xf64> loc(#n1)
      %1 = math.exp %0 : f64 loc(#n1)
      memref.store %1, %y[%j] : memref<?xf64> loc(#n1)
    } loc(#n1)
  } loc(#n0)
  return
}
#n0 = loc("n0")
#n1 = loc("n1")

// -----

// What has no body is left as it is, and so are other functions than main.
// CHECK: module {
// CHECK-NOT: graphc_profile
// CHECK: func.func @shapes
func.func private @main(memref<?xf64>)
func.func @shapes(%n: index) -> index {
  return %n : index
}

// -----

// One operation over the elements of a matrix is one slot, whatever loops it has.
// CHECK: graphc.profile = [{nodes = [], parent = 0 : i64, what = "function"}, {nodes = ["n1"], parent = 0 : i64, what = "loop"}]
// CHECK: graphc_profile_enter(i64) attributes {graphc.helper = {kind = "profile", name = "enter", slots = 2 : i64}
func.func @main(%y: memref<?x?xf64>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = arith.constant 1.0 : f64
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      memref.store %c, %y[%i, %j] : memref<?x?xf64> loc(#n1)
    } loc(#n1)
  } loc(#n1)
  return
}
#n1 = loc("n1")
