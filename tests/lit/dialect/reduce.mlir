// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<?x3x4xf64>) -> tensor<3xf64> {
  // CHECK: "graphc.reduce_sum"(%{{.*}}) {axes = array<i64: 0, 2>} : (tensor<?x3x4xf64>) -> tensor<3xf64>
  %0 = "graphc.reduce_sum"(%x) {axes = array<i64: 0, 2>} : (tensor<?x3x4xf64>) -> tensor<3xf64>
  // CHECK: "graphc.reduce_max"(%{{.*}}) {axes = array<i64>}
  %1 = "graphc.reduce_max"(%x) {axes = array<i64>} : (tensor<?x3x4xf64>) -> tensor<?x3x4xf64>
  // CHECK: "graphc.argmax"(%{{.*}}) {axis = 1 : i64} : (tensor<?x3x4xf64>) -> tensor<?x4xi64>
  %2 = "graphc.argmax"(%x) {axis = 1 : i64} : (tensor<?x3x4xf64>) -> tensor<?x4xi64>
  // CHECK: "graphc.softmax"(%{{.*}}) {axes = array<i64: 2>}
  %3 = "graphc.softmax"(%x) {axes = array<i64: 2>} : (tensor<?x3x4xf64>) -> tensor<?x3x4xf64>
  // CHECK: "graphc.log_softmax"(%{{.*}}) {axes = array<i64: 2>}
  %4 = "graphc.log_softmax"(%x) {axes = array<i64: 2>} : (tensor<?x3x4xf64>) -> tensor<?x3x4xf64>
  return %0 : tensor<3xf64>
}
