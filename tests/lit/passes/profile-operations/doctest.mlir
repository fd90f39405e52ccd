// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-profile-operations %s | filecheck %s

// CHECK: module attributes {graphc.profile = [{nodes = [], parent = 0 : i64, what = "function"}, {nodes = ["n1", "n0"], parent = 0 : i64, what = "loop"}]}
// CHECK: func.func @main
// CHECK: call @graphc_profile_begin()
// CHECK: call @graphc_profile_enter(%c1_i64)
// CHECK-NEXT: scf.for
// CHECK: call @graphc_profile_leave(%c0_i64)
// CHECK: call @graphc_profile_leave
// CHECK-NEXT: return
func.func @main(%x: memref<?xf64>, %y: memref<?xf64>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %0 = memref.load %x[%i] : memref<?xf64> loc(#n1)
    %1 = math.exp %0 : f64 loc(#n0)
    memref.store %1, %y[%i] : memref<?xf64> loc(#n1)
  } loc(#n1)
  return
}
#n0 = loc("n0")
#n1 = loc("n1")
