// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-placement %s | filecheck %s

// A factorization has no kernel. What is done to the factor before the system is solved runs on the host, too:
// the device would have to be sent the factor, and to send it back.
// CHECK: func.func @graphc_host_0(%[[C:.*]]: tensor<?x?xcomplex<f64>>, %[[D:.*]]: tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
// CHECK-SAME: ["graphc.cholesky", "cholesky of complex128 has no kernel", ""]
// CHECK: %[[L:.*]] = "graphc.cholesky"(%[[C]])
// CHECK: %[[N:.*]] = "graphc.neg"(%[[L]])
// CHECK: "graphc.solve_triangular"(%[[N]], %[[D]])
// CHECK: func.func @main(%[[A:.*]]: tensor<?x?xcomplex<f64>>, %[[B:.*]]: tensor<?x?xcomplex<f64>>)
// CHECK: %[[E:.*]] = "graphc.exp"(%[[A]])
// CHECK: %[[X:.*]] = call @graphc_host_0(%[[E]], %[[B]])
// CHECK: %[[Y:.*]] = "graphc.sin"(%[[X]])
// CHECK: return %[[Y]]
func.func @main(%a: tensor<?x?xcomplex<f64>>, %b: tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>> {
  %e = "graphc.exp"(%a) : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %l = "graphc.cholesky"(%e) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %n = "graphc.neg"(%l) : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %x = "graphc.solve_triangular"(%n, %b) {lower = 1 : i64, trans = 0 : i64, unit_diagonal = 0 : i64} : (tensor<?x?xcomplex<f64>>, tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %y = "graphc.sin"(%x) : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  return %y : tensor<?x?xcomplex<f64>>
}
