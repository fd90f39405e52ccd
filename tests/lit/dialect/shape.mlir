// RUN: graphc-opt %s | filecheck %s

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<?x1x3xf32>, %n: index, %s: tensor<i64>) -> tensor<?xf32> {
  // CHECK: "graphc.constant"() {value = dense<[1, 255]> : tensor<2xui8>} : () -> tensor<2xui8>
  %0 = "graphc.constant"() {value = dense<[1, 255]> : tensor<2xui8>} : () -> tensor<2xui8>
  // CHECK: "graphc.dimshuffle"(%{{.*}}) {order = array<i64: 2, -1, 0>} : (tensor<?x1x3xf32>) -> tensor<3x1x?xf32>
  %1 = "graphc.dimshuffle"(%x) {order = array<i64: 2, -1, 0>} : (tensor<?x1x3xf32>) -> tensor<3x1x?xf32>
  // CHECK: "graphc.reshape"(%{{.*}}, %{{.*}}) : (tensor<?x1x3xf32>, index) -> tensor<?xf32>
  %2 = "graphc.reshape"(%x, %n) : (tensor<?x1x3xf32>, index) -> tensor<?xf32>
  // CHECK: "graphc.broadcast_to"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<?xf32>, index, index) -> tensor<?x?xf32>
  %3 = "graphc.broadcast_to"(%2, %n, %n) : (tensor<?xf32>, index, index) -> tensor<?x?xf32>
  // CHECK: "graphc.specify_shape"
  %4 = "graphc.specify_shape"(%2, %n) : (tensor<?xf32>, index) -> tensor<7xf32>
  // CHECK: "graphc.iota"
  %5 = "graphc.iota"(%s, %s, %n) : (tensor<i64>, tensor<i64>, index) -> tensor<?xi64>
  return %2 : tensor<?xf32>
}
