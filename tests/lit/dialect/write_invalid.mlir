// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @sizes(%n: index) {
  // expected-error @below {{needs one size for each of 2 dimensions of its type, but has 1}}
  %0 = "graphc.write_buffer"(%n) {type = tensor<?x?xf64>} : (index) -> !graphc.buffer
  return
}

// -----

func.func @static() {
  %c2 = arith.constant 2 : index
  // expected-error @below {{size of dimension 0 must be 3, but is 2}}
  %0 = "graphc.write_buffer"(%c2) {type = tensor<3xf64>} : (index) -> !graphc.buffer
  return
}

// -----

func.func @no_type(%n: index) {
  // expected-error @below {{needs an attribute 'type' that is a ranked tensor type}}
  %0 = "graphc.write_buffer"(%n) : (index) -> !graphc.buffer
  return
}

// -----

func.func @axis(%n: index) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{axis 1 is out of range for rank 1}}
  %1 = "graphc.write_split"(%0, %n) {axis = 1 : i64} : (!graphc.buffer, index) -> !graphc.buffer
  return
}

// -----

func.func @beyond(%n: index) {
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %0 = "graphc.write_buffer"(%c5) {type = tensor<5xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{parts take 6 of axis 0, which has size 5}}
  %1:2 = "graphc.write_split"(%0, %c6, %n) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  return
}

// -----

func.func @uncovered() {
  %c5 = arith.constant 5 : index
  %c2 = arith.constant 2 : index
  %0 = "graphc.write_buffer"(%c5) {type = tensor<5xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{parts cover 4 of axis 0, which has size 5}}
  %1:2 = "graphc.write_split"(%0, %c2, %c2) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  return
}

// -----

func.func @negative(%n: index) {
  %m = arith.constant -1 : index
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{sizes of parts must not be negative, but are [-1]}}
  %1 = "graphc.write_split"(%0, %m) {axis = 0 : i64} : (!graphc.buffer, index) -> !graphc.buffer
  return
}

// -----

func.func @overlap(%n: index, %x: tensor<?xf64>) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{its buffer is split, viewed or written a second time}}
  %2 = "graphc.write"(%x, %0) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  %3 = "graphc.write"(%x, %0) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  return
}

// -----

func.func @reshaped() {
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %0 = "graphc.write_buffer"(%c5) {type = tensor<5xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{cannot reshape 5 elements to 6}}
  %1 = "graphc.write_view"(%0, %c6) {type = tensor<6xf64>} : (!graphc.buffer, index) -> !graphc.buffer
  return
}

// -----

func.func @dropped(%n: index) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{dropped axis 0 must have static size 1}}
  %1 = "graphc.write_view"(%0) {order = array<i64>, type = tensor<f64>} : (!graphc.buffer) -> !graphc.buffer
  return
}

// -----

func.func @dtype(%n: index, %x: tensor<?xf32>) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  // expected-error @below {{element types must agree, but are f64, f32}}
  %1 = "graphc.write"(%x, %0) : (tensor<?xf32>, !graphc.buffer) -> !graphc.token
  return
}

// -----

func.func @shape(%n: index, %x: tensor<?x3xf64>) {
  %c2 = arith.constant 2 : index
  %0 = "graphc.write_buffer"(%n, %c2) {type = tensor<?x2xf64>} : (index, index) -> !graphc.buffer
  // expected-error @below {{value must have shape ?x2, but has ?x3}}
  %1 = "graphc.write"(%x, %0) : (tensor<?x3xf64>, !graphc.buffer) -> !graphc.token
  return
}

// -----

func.func @argument(%b: !graphc.buffer, %x: tensor<?xf64>) {
  // expected-error @below {{its buffer must be made by a graphc.write_buffer, write_split or write_view}}
  %1 = "graphc.write"(%x, %b) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  return
}

// -----

func.func @unwritten(%n: index, %x: tensor<?xf64>) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  %1:2 = "graphc.write_split"(%0, %n, %n) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %2 = "graphc.write"(%x, %1#0) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  // expected-error @below {{a part of the buffer is never written}}
  %3 = "graphc.write_join"(%0, %2) : (!graphc.buffer, !graphc.token) -> tensor<?xf64>
  return
}

// -----

func.func @too_early(%n: index, %x: tensor<?xf64>) {
  %0 = "graphc.write_buffer"(%n) {type = tensor<?xf64>} : (index) -> !graphc.buffer
  %1:2 = "graphc.write_split"(%0, %n, %n) {axis = 0 : i64} : (!graphc.buffer, index, index) -> (!graphc.buffer, !graphc.buffer)
  %2 = "graphc.write"(%x, %1#0) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  %3 = "graphc.write"(%x, %1#1) : (tensor<?xf64>, !graphc.buffer) -> !graphc.token
  // expected-error @below {{needs the tokens of all 2 writes to its buffer, each once}}
  %4 = "graphc.write_join"(%0, %2) : (!graphc.buffer, !graphc.token) -> tensor<?xf64>
  return
}
