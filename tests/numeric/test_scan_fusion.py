# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which rows scan-merge passes from one loop to another, and what scan-push-out-non-seq leaves in a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphc.backends.interpret.interpreter import run_function
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.legality import check

MERGE = "graphc-scan-merge"
HOIST = "graphc-scan-push-out-non-seq"


def _producer_and_consumer(window: int, keep: str, reverse: bool, row: int, sliced: bool) -> str:
    """A loop over what another one keeps, from a row on: a slice of it, or read at an offset."""
    direction = str(reverse).lower()
    taps = ", ".join(str(tap) for tap in range(-window, 0))
    stack, index = ("%part", "%t") if sliced else ("%hs", "%u")
    return f"""
func.func @main(%x: tensor<?xf64>, %h0: tensor<{window}xf64>) -> (tensor<?xf64>, tensor<?xf64>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = arith.constant {row} : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %a = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {{state = "h", tap = -{window} : i64}} : (index) -> tensor<f64>
    %xt = "graphc.scan_seq"(%x, %t) : (tensor<?xf64>, index) -> tensor<f64>
    %y = "graphc.sub"(%xt, %h) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%h0, %y) {{state = "h", taps = array<i64: {taps}>, writes = array<i64: 0>,
      keep = "{keep}"}} : (tensor<{window}xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "a", reverse = {direction}}} : (index) -> !graphc.loop
  %hs = "graphc.scan_trace"(%a) {{state = "h"}} : (!graphc.loop) -> tensor<?xf64>
  %rows = tensor.dim %hs, %c0 : tensor<?xf64>
  %start = arith.minsi %row, %rows : index
  %size = arith.subi %rows, %start : index
  %fits = arith.cmpi sge, %size, %c0 : index
  "graphc.check"(%fits, %size, %c0) {{message = "{{given}}", error = "ValueError"}} : (i1, index, index) -> ()
  %part = "graphc.slice"(%hs, %start, %size, %c1) : (tensor<?xf64>, index, index, index) -> tensor<?xf64>
  %b = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %u = arith.addi %row, %t : index
    %ht = "graphc.scan_seq"({stack}, {index}) : (tensor<?xf64>, index) -> tensor<f64>
    %g = "graphc.scan_prev"(%t) {{state = "h", tap = -1 : i64}} : (index) -> tensor<f64>
    %y = "graphc.add"(%g, %ht) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "graphc.scan_carry"(%g0, %y) {{state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "all"}}
      : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "b", reverse = {direction}}} : (index) -> !graphc.loop
  %gs = "graphc.scan_trace"(%b) {{state = "h"}} : (!graphc.loop) -> tensor<?xf64>
  return %hs, %gs : tensor<?xf64>, tensor<?xf64>
}}
""".replace('  %a = "graphc.scan"', '  %g0 = arith.constant dense<0.5> : tensor<1xf64>\n  %a = "graphc.scan"')


@pytest.mark.parametrize("sliced", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("window", "keep", "row"),
    [
        (1, "all", 0),
        (1, "all", 1),
        (3, "all", 0),
        (3, "all", 2),
        (3, "all", 3),
        (1, "steps", 0),
        (2, "steps", 0),
    ],
)
def test_rows_that_are_there_are_passed_on(
    window: int, keep: str, row: int, reverse: bool, sliced: bool
) -> None:
    text = _producer_and_consumer(window, keep, reverse, row, sliced)
    for n in (0, 1, 2, 5):
        inputs = [np.arange(1.0, n + 1), np.arange(window) * 0.25]
        module, statistics = _check(text, inputs, MERGE)
        assert statistics == {"consumers merged": 1, "rows passed on": 1, "checks removed": 1}, statistics
        assert module.count('"graphc.scan"') == 1


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_beyond_the_window_are_not_passed_on(reverse: bool) -> None:
    """The row after the new one is not there yet; the trace is too short for it unless nothing runs."""
    text = _producer_and_consumer(1, "all", reverse, 2, sliced=False)
    module, _ = _check(text, [np.arange(0.0), np.zeros(1)], MERGE)
    assert module.count('"graphc.scan"') == 2


_FALLIBLE = {
    "sizes differ": '"graphc.add"(%a, %b) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>',
    "wrong type": "tensor.cast %b : tensor<?xf64> to tensor<2xf64>",
    "no row": '"graphc.scan_seq"(%m, %c0) : (tensor<?x?xf64>, index) -> tensor<?xf64>',
    "no element": '"graphc.reduce_max"(%m) {axes = array<i64: 0>} : (tensor<?x?xf64>) -> tensor<?xf64>',
    "no position": '"graphc.take"(%a, %i) {axis = 0 : i64} : (tensor<?xf64>, tensor<2xi64>) -> tensor<2xf64>',
    "reshape": '"graphc.reshape"(%a, %c5) : (tensor<?xf64>, index) -> tensor<?xf64>',
    "broadcast": '"graphc.broadcast_to"(%a, %c5) : (tensor<?xf64>, index) -> tensor<?xf64>',
}


@pytest.mark.parametrize("operation", _FALLIBLE.values(), ids=_FALLIBLE.keys())
def test_what_could_fail_stays_in_a_loop_that_may_not_run(operation: str) -> None:
    result = operation.split()[-1]
    text = f"""
func.func @main(%a: tensor<?xf64>, %b: tensor<?xf64>, %m: tensor<?x?xf64>, %i: tensor<2xi64>, %k: tensor<i64>)
    -> tensor<?xf64> {{
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %k1 = tensor.extract %k[] : tensor<i64>
  %n = arith.index_cast %k1 : i64 to index
  %s = "graphc.scan"(%n) ({{
  ^bb0(%t: index):
    %y = {operation}
    %e = "graphc.exp"(%y) : ({result}) -> {result}
    %z = "graphc.reduce_sum"(%e) {{axes = array<i64: 0>}} : ({result}) -> tensor<f64>
    "graphc.scan_collect"(%z) {{state = "z", keep = "steps"}} : (tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "s", reverse = false}} : (index) -> !graphc.loop
  %zs = "graphc.scan_trace"(%s) {{state = "z"}} : (!graphc.loop) -> tensor<?xf64>
  return %zs : tensor<?xf64>
}}
"""
    inputs = [np.zeros(2), np.zeros(3), np.zeros((0, 2)), np.array([0, 7]), np.array(0)]
    _, statistics = _check(text, inputs, HOIST)
    assert statistics == {}


def _check(text: str, inputs: list[Any], flag: str) -> tuple[str, dict[str, int]]:
    """Runs a pass, compares the results before and after; returns the module and the pass's statistics."""
    with new_context(), ir.Location.unknown():
        expected = run_function(ir.Module.parse(text), inputs)
        module = ir.Module.parse(text)
        report = run_pipeline(module, [flag], verify_each=True, check=check)
        after = str(module)
        for result, want in zip(run_function(ir.Module.parse(after), inputs), expected, strict=True):
            np.testing.assert_allclose(result, want)
        return after, report.runs[0].statistics
