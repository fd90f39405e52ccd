// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-gpu-placement --split-input-file %s | filecheck %s

// Two operations of the host that need nothing of each other are one function. Sizes of what it is given are
// computed in it, other numbers are passed; a constant is made on both sides.
// CHECK: func.func @graphc_host_0(%[[X:.*]]: tensor<?xf64>, %[[M:.*]]: tensor<?xi64>, %[[K:.*]]: index)
// CHECK: "graphc.j0"(%[[X]])
// CHECK: "graphc.repeat_positions"(%[[M]], %[[K]])
// CHECK: func.func @main
// CHECK: %[[N:.*]] = arith.addi
// CHECK: call @graphc_host_0(%arg0, %arg1, %[[N]])
// CHECK-NOT: call
func.func @main(%x: tensor<?xf64>, %m: tensor<?xi64>, %n: index) -> (tensor<?xf64>, tensor<?xi64>) {
  %c1 = arith.constant 1 : index
  %s = "graphc.j0"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %k = arith.addi %n, %c1 : index
  %p = "graphc.repeat_positions"(%m, %k) : (tensor<?xi64>, index) -> tensor<?xi64>
  return %s, %p : tensor<?xf64>, tensor<?xi64>
}

// -----

// A product stays on the device, between two functions of the host.
// CHECK: func.func @main
// CHECK: %[[A:.*]] = call @graphc_host_0(%arg0)
// CHECK: %[[B:.*]] = "graphc.matmul"(%[[A]], %[[A]])
// CHECK: call @graphc_host_1(%[[B]])
func.func @main(%x: tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>> {
  %a = "graphc.cholesky"(%x) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %b = "graphc.matmul"(%a, %a) {transpose_a = false, transpose_b = true} : (tensor<?x?xcomplex<f64>>, tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  %c = "graphc.cholesky"(%b) {lower = 1 : i64, check = 1 : i64} : (tensor<?x?xcomplex<f64>>) -> tensor<?x?xcomplex<f64>>
  return %c : tensor<?x?xcomplex<f64>>
}

// -----

// Functions that are given what other functions compute say why as well: a call takes the place of an operand,
// on the host, and from transform to transform.
// CHECK: func.func @graphc_host_0
// CHECK-SAME: inv of complex128 has no kernel
// CHECK: func.func @graphc_host_1
// CHECK-SAME: solve of complex128 has no kernel
// CHECK: func.func @graphc_host_2
// CHECK-SAME: fft_any has no kernel
// CHECK: func.func @graphc_host_3
// CHECK-SAME: fft_any has no kernel
// CHECK: func.func @main
// CHECK: %[[P:.*]] = call @graphc_host_0(%arg0)
// CHECK: %[[M:.*]] = "graphc.matmul"(%[[P]], %[[P]])
// CHECK: %[[S:.*]] = call @graphc_host_1(%[[P]], %[[M]])
// CHECK: %[[F:.*]] = call @graphc_host_2(%[[S]])
// CHECK: call @graphc_host_3(%[[F]])
func.func @main(%a: tensor<3x3xcomplex<f64>>) -> (tensor<3x3xcomplex<f64>>, tensor<3x3xcomplex<f64>>) {
  %p = "graphc.inv"(%a) : (tensor<3x3xcomplex<f64>>) -> tensor<3x3xcomplex<f64>>
  %m = "graphc.matmul"(%p, %p) {transpose_a = false, transpose_b = false} : (tensor<3x3xcomplex<f64>>, tensor<3x3xcomplex<f64>>) -> tensor<3x3xcomplex<f64>>
  %s = "graphc.solve"(%p, %m) {assume = 0 : i64, lower = 0 : i64, transposed = 0 : i64, check = 1 : i64} : (tensor<3x3xcomplex<f64>>, tensor<3x3xcomplex<f64>>) -> tensor<3x3xcomplex<f64>>
  %t = arith.constant dense<> : tensor<0xf64>
  %f = "graphc.fft_any"(%s, %t) {inverse = 1 : i64, mode = 1 : i64, radices = 6 : i64} : (tensor<3x3xcomplex<f64>>, tensor<0xf64>) -> tensor<3x3xcomplex<f64>>
  %g = "graphc.fft_any"(%f, %t) {inverse = 1 : i64, mode = 1 : i64, radices = 6 : i64} : (tensor<3x3xcomplex<f64>>, tensor<0xf64>) -> tensor<3x3xcomplex<f64>>
  return %s, %g : tensor<3x3xcomplex<f64>>, tensor<3x3xcomplex<f64>>
}

// -----

// Work that would bring one array more to the host stays on the device; so does work that only the device needs.
// CHECK: func.func @graphc_host_0
// CHECK-SAME: j0 is code of SciPy
// CHECK: func.func @main
// CHECK: %[[P:.*]] = "graphc.mul"(%arg0, %arg1)
// CHECK: %[[J:.*]] = call @graphc_host_0(%[[P]])
// CHECK: "graphc.add"(%[[J]], %arg1)
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %p = "graphc.mul"(%x, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %j = "graphc.j0"(%p) : (tensor<?xf64>) -> tensor<?xf64>
  %z = "graphc.add"(%j, %y) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %z : tensor<?xf64>
}

// -----

// What comes after a check stays after it, also where the check waits for the host.
// CHECK: func.func @main
// CHECK: call @graphc_host_0(%arg0)
// CHECK: tensor.extract
// CHECK: graphc.check
// CHECK: "graphc.exp"
func.func @main(%x: tensor<?xf64>, %y: tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f64
  %s = "graphc.j0"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  %e = tensor.extract %s[%c0] : tensor<?xf64>
  %ok = arith.cmpf oge, %e, %zero : f64
  "graphc.check"(%ok, %c0, %c0) {message = "negative", error = "ValueError"} : (i1, index, index) -> ()
  %z = "graphc.exp"(%y) : (tensor<?xf64>) -> tensor<?xf64>
  return %s, %z : tensor<?xf64>, tensor<?xf64>
}

// -----

// A conditional that contains such work runs on the host as a whole, with what it needs from outside.
// CHECK: func.func @graphc_host_0(%{{.*}}: tensor<?xf64>, %[[C:.*]]: i1)
// CHECK: scf.if %[[C]]
// CHECK: func.func @main
// CHECK: call @graphc_host_0(%arg1, %arg0)
func.func @main(%c: i1, %x: tensor<?xf64>) -> tensor<?xf64> {
  %y = scf.if %c -> tensor<?xf64> {
    %s = "graphc.j0"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %s : tensor<?xf64>
  } else {
    scf.yield %x : tensor<?xf64>
  }
  return %y : tensor<?xf64>
}

// -----

// Nothing is moved where everything has a kernel.
// CHECK: func.func @main
// CHECK-NOT: call
func.func @main(%x: tensor<?xf64>) -> tensor<?xf64> {
  %y = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}
