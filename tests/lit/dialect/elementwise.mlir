// RUN: graphc-opt %s | filecheck %s

// Ranks are equal, static ones broadcast, and a dynamic size may meet any size but one.
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<?x3xf64>, %y: tensor<1x3xf64>, %z: tensor<4x3xf64>) -> tensor<4x3xf64> {
  // CHECK: "graphc.add"(%{{.*}}, %{{.*}}) : (tensor<?x3xf64>, tensor<1x3xf64>) -> tensor<?x3xf64>
  %0 = "graphc.add"(%x, %y) : (tensor<?x3xf64>, tensor<1x3xf64>) -> tensor<?x3xf64>
  // CHECK: "graphc.mul"(%{{.*}}, %{{.*}}) {cluster = 3 : i64}
  %1 = "graphc.mul"(%0, %z) {cluster = 3 : i64} : (tensor<?x3xf64>, tensor<4x3xf64>) -> tensor<4x3xf64>
  return %1 : tensor<4x3xf64>
}

// CHECK-LABEL: func.func @types
func.func @types(%x: tensor<?xf32>, %u: tensor<?xui8>) -> tensor<?xui8> {
  // CHECK: "graphc.lt"(%{{.*}}, %{{.*}}) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
  %0 = "graphc.lt"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
  // CHECK: "graphc.switch"
  %1 = "graphc.switch"(%0, %u, %u) : (tensor<?xi1>, tensor<?xui8>, tensor<?xui8>) -> tensor<?xui8>
  // CHECK: "graphc.cast"(%{{.*}}) : (tensor<?xui8>) -> tensor<?xcomplex<f64>>
  %2 = "graphc.cast"(%1) : (tensor<?xui8>) -> tensor<?xcomplex<f64>>
  // CHECK: "graphc.abs"(%{{.*}}) : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  %3 = "graphc.abs"(%2) : (tensor<?xcomplex<f64>>) -> tensor<?xf64>
  return %1 : tensor<?xui8>
}
