// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @bounds(%x: tensor<2x3xf64>, %n: index) {
  // expected-error @below {{needs 2 offsets, sizes and strides (6 index operands), but has 3}}
  %0 = "graphc.slice"(%x, %n, %n, %n) : (tensor<2x3xf64>, index, index, index) -> tensor<?x?xf64>
  return
}

// -----

func.func @rank(%x: tensor<2xf64>, %n: index) {
  // expected-error @below {{result must have rank 1, but has rank 0}}
  %0 = "graphc.slice"(%x, %n, %n, %n) : (tensor<2xf64>, index, index, index) -> tensor<f64>
  return
}

// -----

func.func @update_flag(%x: tensor<2xf64>, %n: index) {
  // expected-error @below {{needs a boolean attribute 'accumulate'}}
  %0 = "graphc.update_slice"(%x, %x, %n, %n, %n) : (tensor<2xf64>, tensor<2xf64>, index, index, index) -> tensor<2xf64>
  return
}

// -----

func.func @update_rank(%x: tensor<2xf64>, %y: tensor<f64>, %n: index) {
  // expected-error @below {{y must have rank 1, but has rank 0}}
  %0 = "graphc.update_slice"(%x, %y, %n, %n, %n) {accumulate = true} : (tensor<2xf64>, tensor<f64>, index, index, index) -> tensor<2xf64>
  return
}

// -----

func.func @take_indices(%x: tensor<2xf64>, %i: tensor<4xi32>) {
  // expected-error @below {{indices must have element type i64, but have i32}}
  %0 = "graphc.take"(%x, %i) {axis = 0 : i64} : (tensor<2xf64>, tensor<4xi32>) -> tensor<4xf64>
  return
}

// -----

func.func @take_axis(%x: tensor<2xf64>, %i: tensor<4xi64>) {
  // expected-error @below {{axis 1 is out of range for rank 1}}
  %0 = "graphc.take"(%x, %i) {axis = 1 : i64} : (tensor<2xf64>, tensor<4xi64>) -> tensor<4xf64>
  return
}

// -----

func.func @take_shape(%x: tensor<2xf64>, %i: tensor<4xi64>) {
  // expected-error @below {{result dimension 0 must be 4, but is 5}}
  %0 = "graphc.take"(%x, %i) {axis = 0 : i64} : (tensor<2xf64>, tensor<4xi64>) -> tensor<5xf64>
  return
}

// -----

func.func @put_rank(%x: tensor<2xf64>, %y: tensor<4xf64>, %i: tensor<4x4xi64>) {
  // expected-error @below {{y must have rank 2, but has rank 1}}
  %0 = "graphc.put"(%x, %y, %i) {axis = 0 : i64, accumulate = true} : (tensor<2xf64>, tensor<4xf64>, tensor<4x4xi64>) -> tensor<2xf64>
  return
}

// -----

func.func @join_types(%x: tensor<2xf64>, %y: tensor<3xf64>) {
  // expected-error @below {{operands must have one type}}
  %0 = "graphc.join"(%x, %y) {axis = 0 : i64} : (tensor<2xf64>, tensor<3xf64>) -> tensor<5xf64>
  return
}

// -----

func.func @join_nothing() {
  // expected-error @below {{needs at least one operand}}
  %0 = "graphc.join"() {axis = 0 : i64} : () -> tensor<5xf64>
  return
}

// -----

func.func @join_size(%x: tensor<2xf64>) {
  // expected-error @below {{result dimension 0 must be 4, but is 5}}
  %0 = "graphc.join"(%x, %x) {axis = 0 : i64} : (tensor<2xf64>, tensor<2xf64>) -> tensor<5xf64>
  return
}

// -----

func.func @matmul_rank(%x: tensor<2xf64>) {
  // expected-error @below {{operands must have equal ranks of at least 2, but have 1 and 1}}
  %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<2xf64>, tensor<2xf64>) -> tensor<f64>
  return
}

// -----

func.func @matmul_flags(%x: tensor<2x2xf64>) {
  // expected-error @below {{needs a boolean attribute 'transpose_b'}}
  %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = 1 : i64} : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return
}

// -----

func.func @matmul_summed(%x: tensor<2x3xf64>) {
  // expected-error @below {{summed dimensions disagree: 3 and 2}}
  %0 = "graphc.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return
}

// -----

func.func @matmul_batch(%x: tensor<2x3x3xf64>, %y: tensor<4x3x3xf64>) {
  // expected-error @below {{batch dimension 0 disagrees: 2 and 4}}
  %0 = "graphc.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<2x3x3xf64>, tensor<4x3x3xf64>) -> tensor<2x3x3xf64>
  return
}

// -----

func.func @check(%c: i1, %n: index) {
  // expected-error @below {{error must be one of ValueError, TypeError, IndexError, AssertionError, ZeroDivisionError, LinAlgError, OverflowError, RuntimeError, ShapeError, but is KeyError}}
  "graphc.check"(%c, %n, %n) {message = "", error = "KeyError"} : (i1, index, index) -> ()
  return
}

// -----

func.func @check_type(%c: i8, %n: index) {
  // expected-error @below {{expected 'i1' but got 'i8'}}
  "graphc.check"(%c, %n, %n) {message = "", error = "ValueError"} : (i8, index, index) -> ()
  return
}
