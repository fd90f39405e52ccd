// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @constant() {
  // expected-error @below {{value must have type tensor<3xui8>, but has tensor<2xui8>}}
  %0 = "graphc.constant"() {value = dense<1> : tensor<2xui8>} : () -> tensor<3xui8>
  return
}

// -----

func.func @constant_missing() {
  // expected-error @below {{needs a dense elements attribute 'value'}}
  %0 = "graphc.constant"() : () -> tensor<3xui8>
  return
}

// -----

func.func @twice(%x: tensor<2x3xf64>) {
  // expected-error @below {{order [0, 0] must name each axis of a rank 2 operand at most once, or be -1}}
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: 0, 0>} : (tensor<2x3xf64>) -> tensor<2x2xf64>
  return
}

// -----

func.func @dropped(%x: tensor<2x?xf64>) {
  // expected-error @below {{dropped axis 1 must have static size 1}}
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: 0>} : (tensor<2x?xf64>) -> tensor<2xf64>
  return
}

// -----

func.func @inserted(%x: tensor<2xf64>) {
  // expected-error @below {{result dimension 0 must be 1, but is 2}}
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: -1, 0>} : (tensor<2xf64>) -> tensor<2x2xf64>
  return
}

// -----

func.func @inserted_without_its_size(%x: tensor<?xf64>) {
  // expected-error @below {{inserted axis 0 must have static size 1}}
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<?x?xf64>
  return
}

// -----

func.func @elements(%x: tensor<2xf64>) {
  // expected-error @below {{element types must agree, but are f64, f32}}
  %0 = "graphc.dimshuffle"(%x) {order = array<i64: 0>} : (tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @sizes(%x: tensor<2xf64>, %n: index) {
  // expected-error @below {{needs one size for each of 2 result dimensions, but has 1}}
  %0 = "graphc.reshape"(%x, %n) : (tensor<2xf64>, index) -> tensor<?x?xf64>
  return
}

// -----

func.func @count(%x: tensor<2x3xf64>, %n: index) {
  // expected-error @below {{cannot reshape 6 elements to 5}}
  %0 = "graphc.reshape"(%x, %n) : (tensor<2x3xf64>, index) -> tensor<5xf64>
  return
}

// -----

func.func @lower_rank(%x: tensor<2x3xf64>, %n: index) {
  // expected-error @below {{cannot broadcast rank 2 to rank 1}}
  %0 = "graphc.broadcast_to"(%x, %n) : (tensor<2x3xf64>, index) -> tensor<?xf64>
  return
}

// -----

func.func @broadcast(%x: tensor<2xf64>, %n: index) {
  // expected-error @below {{cannot broadcast operand dimension 0 of size 2 to 3}}
  %0 = "graphc.broadcast_to"(%x, %n, %n) : (tensor<2xf64>, index, index) -> tensor<?x3xf64>
  return
}

// -----

func.func @contradiction(%x: tensor<2xf64>, %n: index) {
  // expected-error @below {{result dimension 0 must be 2, but is 3}}
  %0 = "graphc.specify_shape"(%x, %n) : (tensor<2xf64>, index) -> tensor<3xf64>
  return
}

// -----

func.func @iota(%x: tensor<1xi64>, %n: index) {
  // expected-error @below {{start and step must be 0-d}}
  %0 = "graphc.iota"(%x, %x, %n) : (tensor<1xi64>, tensor<1xi64>, index) -> tensor<?xi64>
  return
}

// -----

func.func @size_type(%x: tensor<2xf64>, %n: i64) {
  // expected-error @below {{expected base type 'builtin.index' but got 'builtin.integer'}}
  %0 = "graphc.reshape"(%x, %n) : (tensor<2xf64>, i64) -> tensor<?xf64>
  return
}
