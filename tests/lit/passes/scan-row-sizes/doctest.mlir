// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-scan-row-sizes --cse %s | filecheck %s

// A row is as long as the first number of k says: a scan of at most one iteration tells it before any row is
// made, and each row is checked.
// CHECK: %[[ONE:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK: "graphc.scan"(%[[ONE]])
// CHECK: "graphc.scan_collect"(%{{.*}}) {{{.*}}state = "size of part along 0"
// CHECK: %[[SIZE:.*]] = arith.index_cast %{{.*}} : i64 to index
// CHECK: "graphc.scan"(%arg2)
// CHECK: %[[PART:.*]] = "graphc.slice"
// CHECK: "graphc.check"
// CHECK: %[[ROW:.*]] = "graphc.specify_shape"(%[[PART]], %[[SIZE]])
// CHECK: "graphc.scan_collect"(%[[ROW]])
func.func @main(%x: tensor<?xf64>, %k: tensor<?xi64>, %n: index) -> tensor<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %kt = "graphc.scan_seq"(%k, %t) : (tensor<?xi64>, index) -> tensor<i64>
    %number = tensor.extract %kt[] : tensor<i64>
    %size = arith.index_cast %number : i64 to index
    %part = "graphc.slice"(%x, %c0, %size, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
    "graphc.scan_collect"(%part) {state = "part", keep = "steps"} : (tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "parts", reverse = false} : (index) -> !graphc.loop
  %parts = "graphc.scan_trace"(%s) {state = "part"} : (!graphc.loop) -> tensor<?x?xf64>
  return %parts : tensor<?x?xf64>
}
