// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --split-input-file --verify-diagnostics %s

func.func @arguments(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  // expected-error @below {{needs a body of one block that takes the index of the iteration}}
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index, %u: index):
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @reverse(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  // expected-error @below {{needs a boolean attribute 'reverse'}}
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_end"() : () -> ()
  }) {name = "loop"} : (index) -> !graphc.loop
  return
}

// -----

func.func @end(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  // expected-error @below {{its body must end with graphc.scan_end}}
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %d = arith.constant 0 : index
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @twice(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    // expected-error @below {{'h' is declared twice in one scan}}
    "graphc.scan_collect"(%y) {state = "h", keep = "steps"} : (tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @unknown_state(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{no state 'g' is declared in its scan}}
    %p = "graphc.scan_prev"(%t) {state = "g", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @output_is_no_state(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{no state 'y' is declared in its scan}}
    %p = "graphc.scan_prev"(%t) {state = "y", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_collect"(%y) {state = "y", keep = "steps"} : (tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @tap(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{state 'h' has the taps [-2, -1], but -3 is read}}
    %p = "graphc.scan_prev"(%t) {state = "h", tap = -3 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_type(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{state 'h' starts as rows of tensor<2x3xf64>, but is read as tensor<3xf32>}}
    %p = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf32>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_shape(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{result dimension 0 must be 3, but is 4}}
    %p = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<4xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_rank(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{result must have rank 1, but has rank 0}}
    %p = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_name(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a string attribute 'state'}}
    %p = "graphc.scan_prev"(%t) {tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_tap(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a negative integer attribute 'tap'}}
    %p = "graphc.scan_prev"(%t) {state = "h", tap = 0 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_no_tap(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a negative integer attribute 'tap'}}
    %p = "graphc.scan_prev"(%t) {state = "h"} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_where(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %c = arith.constant 0 : index
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{its operand must be the index of the scan in whose body it is}}
    %p = "graphc.scan_prev"(%c) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_name(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a string attribute 'state'}}
    "graphc.scan_carry"(%h0, %y) {taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_keep(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a string attribute 'keep'}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_keep_value(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{keep must be one of all, steps, last, but is some}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "some"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_rows(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{'rows' belongs to keep = "last", and only to it}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "last"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_rows_all(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{'rows' belongs to keep = "last", and only to it}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all", rows = 1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_rows_negative(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{cannot keep -1 rows}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "last", rows = -1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_taps(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs an attribute 'taps' of the form array<i64: ...>}}
    "graphc.scan_carry"(%h0, %y) {state = "h", writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_taps_order(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{taps must be negative and ascending, but are [-1, -2]}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -1, -2>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_taps_positive(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{taps must be negative and ascending, but are [-2, 0]}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, 0>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_no_taps(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{taps must be negative and ascending, but are []}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_writes(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs an attribute 'writes' of the form array<i64: ...>}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_writes_range(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{writes must ascend from above -2 to 0, but are [-2, 0]}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: -2, 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_writes_new(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{writes must ascend from above -2 to 0, but are [-1]}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: -1>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_count(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs initial rows and 2 new ones, but has 2 operands}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: -1, 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_kind(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{carries ranked tensors, but is given tensor<2x3xf64> and index}}
    "graphc.scan_carry"(%h0, %n) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, index) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_window(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{initial must hold 3 rows, but has shape 2x3}}
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -3, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_scalar(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<f64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{initial must hold 2 rows, but has shape scalar}}
    "graphc.scan_carry"(%v, %v) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<f64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_dtype(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<3xf32>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{a state that starts as rows of tensor<2x3xf64> cannot go on as tensor<3xf32>}}
    "graphc.scan_carry"(%h0, %v) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf32>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_rank(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<f64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{a state that starts as rows of tensor<2x3xf64> cannot go on as tensor<f64>}}
    "graphc.scan_carry"(%h0, %v) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_shape(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<4xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{dimension 0 of a row starts as 3, but goes on as 4}}
    "graphc.scan_carry"(%h0, %v) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<4xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @collect_name(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs a string attribute 'state'}}
    "graphc.scan_collect"(%y) {keep = "steps"} : (tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @collect_kind(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{collects one ranked tensor}}
    "graphc.scan_collect"(%n) {state = "y", keep = "steps"} : (index) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @collect_keep(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{keep must be one of all, steps, last, but is none}}
    "graphc.scan_collect"(%y) {state = "y", keep = "none"} : (tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @conditions(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %c: i1) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{takes at most one condition}}
    "graphc.scan_end"(%c, %c) : (i1, i1) -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @seq_scalar(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<f64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{cannot read rows of a scalar}}
    %r = "graphc.scan_seq"(%v, %t) : (tensor<f64>, index) -> tensor<f64>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @seq_kind(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index, %v: tensor<*xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{reads a row of a ranked tensor, but is given tensor<*xf64> and gives tensor<f64>}}
    %r = "graphc.scan_seq"(%v, %t) : (tensor<*xf64>, index) -> tensor<f64>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @seq_dtype(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{result element type must be f64, but is f32}}
    %r = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<3xf32>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @seq_shape(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{result dimension 0 must be 3, but is 4}}
    %r = "graphc.scan_seq"(%x, %t) : (tensor<?x3xf64>, index) -> tensor<4xf64>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @seq_operands(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{expects 2 operands and 1 result}}
    %r = "graphc.scan_seq"(%x) : (tensor<?x3xf64>) -> tensor<3xf64>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @trace_name(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{its scan declares no state or output 'g'}}
  %r = "graphc.scan_trace"(%s) {state = "g"} : (!graphc.loop) -> tensor<?x3xf64>
  return
}

// -----

func.func @trace_no_name(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{its scan declares no state or output 'None'}}
  %r = "graphc.scan_trace"(%s) {name = "h"} : (!graphc.loop) -> tensor<?x3xf64>
  return
}

// -----

func.func @trace_dtype(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{'h' is declared with tensor<2x3xf64>, but taken as tensor<?x3xf32>}}
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x3xf32>
  return
}

// -----

func.func @trace_shape(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{result dimension 1 must be 3, but is 4}}
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x4xf64>
  return
}

// -----

func.func @trace_rank(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{result must have rank 2, but has rank 1}}
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return
}

// -----

func.func @trace_rows(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "last", rows = 1 : i64} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  // expected-error @below {{result dimension 0 must be 1, but is 2}}
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<2x3xf64>
  return
}

// -----

func.func @trace_argument(%s: !graphc.loop) {
  // expected-error @below {{takes its rows from a graphc.scan}}
  %r = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?xf64>
  return
}

// -----

func.func @read_argument(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{its operand must be the index of the scan in whose body it is}}
    %p = "graphc.scan_prev"(%n) {state = "h", tap = -1 : i64} : (index) -> tensor<3xf64>
    "graphc.scan_carry"(%h0, %y) {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : (tensor<2x3xf64>, tensor<3xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @read_operands(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{expects 1 operand and 1 result}}
    %p = "graphc.scan_prev"() {state = "h", tap = -1 : i64} : () -> tensor<3xf64>
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @carry_empty(%x: tensor<?x3xf64>, %h0: tensor<2x3xf64>, %y: tensor<3xf64>, %n: index) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    // expected-error @below {{needs initial rows and 1 new ones, but has 0 operands}}
    "graphc.scan_carry"() {state = "h", taps = array<i64: -2, -1>, writes = array<i64: 0>, keep = "all"} : () -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}

// -----

func.func @trace_operands() {
  // expected-error @below {{expects 1 operand and 1 result}}
  %r = "graphc.scan_trace"() {state = "h"} : () -> tensor<?xf64>
  return
}

// -----

func.func @scan_operands() {
  // expected-error @below {{expects 1 operand and 1 region}}
  %r = "graphc.scan"() ({}) {reverse = false} : () -> !graphc.loop
  return
}

// -----

func.func @read_nowhere(%n: index) {
  // expected-error @below {{reads a state outside of a scan}}
  %p = "graphc.scan_prev"(%n) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
  return
}

// -----

func.func @padded_rows_without_a_number(%n: index, %h0: tensor<1xf64>) {
  %s = "graphc.scan"(%n) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    // expected-error @below {{'padded' belongs to keep = "last", and only to it}}
    "graphc.scan_carry"(%h0, %h) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps", padded} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "loop", reverse = false} : (index) -> !graphc.loop
  return
}
