// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --canonicalize --cse %s | filecheck %s
// RUN: graphc-opt --graphc-scan-remove-constants-and-unused-inputs %s | filecheck %s
// RUN: graphc-opt --graphc-algebraic-simplification %s | filecheck %s

// A loop whose results nobody uses stays if there is a check in it, at any depth, and goes otherwise.
// CHECK-LABEL: @main
// CHECK: name = "outer"
// CHECK-NOT: name = "nothing"
func.func @main(%n: index, %c: tensor<?xi1>) {
  %outer = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %inner = "graphc.scan"(%n) ({
    ^bb0(%u: index):
      %c_u = "graphc.scan_seq"(%c, %u) : (tensor<?xi1>, index) -> tensor<i1>
      %holds = tensor.extract %c_u[] : tensor<i1>
      scf.if %holds {
        "graphc.check"(%holds, %t, %u) {error = "AssertionError", message = "m"} : (i1, index, index) -> ()
      }
      "graphc.scan_end"() : () -> ()
    }) {name = "inner", reverse = false} : (index) -> !graphc.loop
    "graphc.scan_end"() : () -> ()
  }) {name = "outer", reverse = false} : (index) -> !graphc.loop
  %nothing = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %c_t = "graphc.scan_seq"(%c, %t) : (tensor<?xi1>, index) -> tensor<i1>
    "graphc.scan_collect"(%c_t) {state = "h", keep = "steps"} : (tensor<i1>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "nothing", reverse = false} : (index) -> !graphc.loop
  return
}
