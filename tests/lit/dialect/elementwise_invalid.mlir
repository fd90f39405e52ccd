// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @rank(%x: tensor<2x3xf64>, %y: tensor<3xf64>) {
  // expected-error @below {{'graphc.add' op operands must have equal ranks, but have shapes 2x3, 3}}
  %0 = "graphc.add"(%x, %y) : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  return
}

// -----

func.func @sizes(%x: tensor<2xf64>, %y: tensor<3xf64>) {
  // expected-error @below {{operands disagree in dimension 0: 2 and 3}}
  %0 = "graphc.add"(%x, %y) : (tensor<2xf64>, tensor<3xf64>) -> tensor<?xf64>
  return
}

// -----

func.func @result_size(%x: tensor<2xf64>) {
  // expected-error @below {{result dimension 0 must be 2, but is 3}}
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @result_rank(%x: tensor<2xf64>) {
  // expected-error @below {{result must have rank 1, but has rank 2}}
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<2x1xf64>
  return
}

// -----

func.func @arity(%x: tensor<2xf64>) {
  // expected-error @below {{'graphc.add' op expects 2 operands, but has 1}}
  %0 = "graphc.add"(%x) : (tensor<2xf64>) -> tensor<2xf64>
  return
}

// -----

func.func @results(%x: tensor<2xf64>) {
  // expected-error @below {{'graphc.exp' op expects 1 result, but has 0}}
  "graphc.exp"(%x) : (tensor<2xf64>) -> ()
  return
}

// -----

func.func @operand_type(%x: index) {
  // expected-error @below {{operand #0 must be a ranked tensor, but is index}}
  %0 = "graphc.exp"(%x) : (index) -> tensor<f64>
  return
}

// -----

func.func @operand_elements(%x: tensor<f64>, %y: tensor<f32>) {
  // expected-error @below {{operands must have one element type, but have f64, f32}}
  %0 = "graphc.mul"(%x, %y) : (tensor<f64>, tensor<f32>) -> tensor<f64>
  return
}

// -----

func.func @result_elements(%x: tensor<f64>) {
  // expected-error @below {{result must have element type i1, but has f64}}
  %0 = "graphc.lt"(%x, %x) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return
}

// -----

func.func @condition(%x: tensor<f64>) {
  // expected-error @below {{condition must have element type i1, but has f64}}
  %0 = "graphc.switch"(%x, %x, %x) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
  return
}

// -----

func.func @branches(%c: tensor<i1>, %x: tensor<f64>, %y: tensor<f32>) {
  // expected-error @below {{branches and result must have one element type, but have f64, f32, f64}}
  %0 = "graphc.switch"(%c, %x, %y) : (tensor<i1>, tensor<f64>, tensor<f32>) -> tensor<f64>
  return
}

// -----

func.func @unknown(%x: tensor<f64>) {
  // expected-error @below {{unregistered operation 'graphc.nonsense' found in dialect ('graphc')}}
  %0 = "graphc.nonsense"(%x) : (tensor<f64>) -> tensor<f64>
  return
}
