// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @index
func.func @index(%x: tensor<?x3xf64>, %y: tensor<2x?xf64>, %i: tensor<4x5xi64>, %z: tensor<4x5x3xf64>, %n: index) -> tensor<4x5x3xf64> {
  // CHECK: "graphc.slice"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
  %0 = "graphc.slice"(%x, %n, %n, %n, %n, %n, %n) : (tensor<?x3xf64>, index, index, index, index, index, index) -> tensor<2x?xf64>
  // CHECK: "graphc.update_slice"{{.*}} {accumulate = true}
  %1 = "graphc.update_slice"(%x, %y, %n, %n, %n, %n, %n, %n) {accumulate = true} : (tensor<?x3xf64>, tensor<2x?xf64>, index, index, index, index, index, index) -> tensor<?x3xf64>
  // CHECK: "graphc.take"(%{{.*}}, %{{.*}}) {axis = 0 : i64} : (tensor<?x3xf64>, tensor<4x5xi64>) -> tensor<4x5x3xf64>
  %2 = "graphc.take"(%1, %i) {axis = 0 : i64} : (tensor<?x3xf64>, tensor<4x5xi64>) -> tensor<4x5x3xf64>
  // CHECK: "graphc.put"(%{{.*}}, %{{.*}}, %{{.*}}) {accumulate = false, axis = 0 : i64}
  %3 = "graphc.put"(%x, %z, %i) {axis = 0 : i64, accumulate = false} : (tensor<?x3xf64>, tensor<4x5x3xf64>, tensor<4x5xi64>) -> tensor<?x3xf64>
  return %2 : tensor<4x5x3xf64>
}

// CHECK-LABEL: func.func @join
func.func @join(%x: tensor<2x?xf64>, %y: tensor<2x?xf64>) -> tensor<2x?xf64> {
  // CHECK: "graphc.join"(%{{.*}}, %{{.*}}) {axis = 1 : i64} : (tensor<2x?xf64>, tensor<2x?xf64>) -> tensor<2x?xf64>
  %0 = "graphc.join"(%x, %y) {axis = 1 : i64} : (tensor<2x?xf64>, tensor<2x?xf64>) -> tensor<2x?xf64>
  return %0 : tensor<2x?xf64>
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<?x3x2xf64>, %b: tensor<7x?x3xf64>) -> tensor<7x2x?xf64> {
  // CHECK: "graphc.matmul"(%{{.*}}, %{{.*}}) {transpose_a = true, transpose_b = true}
  %0 = "graphc.matmul"(%a, %b) {transpose_a = true, transpose_b = true} : (tensor<?x3x2xf64>, tensor<7x?x3xf64>) -> tensor<7x2x?xf64>
  return %0 : tensor<7x2x?xf64>
}

// CHECK-LABEL: func.func @check
func.func @check(%c: i1, %n: index) {
  // CHECK: "graphc.check"(%{{.*}}, %{{.*}}, %{{.*}}) {error = "ValueError", message = "{given} is not {expected}"}
  "graphc.check"(%c, %n, %n) {message = "{given} is not {expected}", error = "ValueError"} : (i1, index, index) -> ()
  return
}
