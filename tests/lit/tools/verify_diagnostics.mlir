// RUN: graphc-opt --verify-diagnostics --split-input-file %s

// Designators: @below, @above and offsets; several comments may mean one line.
func.func @below(%x: tensor<2xf64>) {
  // expected-error @below {{must be 2}}
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @above(%x: tensor<2xf64>) {
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  // expected-error @above {{must be 2}}
  return
}

// -----

func.func @offset(%x: tensor<2xf64>) {
  // expected-error-re @+2 {{dimension [0-9] must be}}

  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>
  return
}

// -----

func.func @same_line(%x: tensor<2xf64>) {
  %0 = "graphc.exp"(%x) : (tensor<2xf64>) -> tensor<3xf64>  // expected-error {{must be 2}}
  return
}

// -----

// expected-note @+2 {{prior use here}}
// expected-error @+2 {{use of value '%x' expects different type than prior uses: 'tensor<3xf64>' vs 'tensor<2xf64>'}}
func.func @notes(%x: tensor<2xf64>) {
  %0 = "graphc.exp"(%x) : (tensor<3xf64>) -> tensor<3xf64>
  return
}
