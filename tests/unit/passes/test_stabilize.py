# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""stabilize keeps finite values and makes more of them finite and accurate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphc.ir.rewrite import apply_rules
from graphc.ir.walk import walk
from graphc.passes.graph import stabilize
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import assert_same, context, function, outcome

PASS = "graphc-stabilize"
T = "tensor<?xf64>"
MODERATE = np.array([-20.0, -3.0, -0.7, 0.0, 0.4, 2.0, 15.0])
_BINARY = ("add", "sub", "mul", "true_div", "pow")


def program(expression: str) -> str:
    """A function of %x from words in postfix order: `x`, `1` and functions, of two values if in `_BINARY`."""
    lines, stack = ["  %one = arith.constant dense<1.0> : tensor<1xf64>"], []
    for i, word in enumerate(expression.split()):
        if word in ("x", "1"):
            stack.append(("%x", T) if word == "x" else ("%one", "tensor<1xf64>"))
            continue
        count = 2 if word in _BINARY else 1
        operands, stack = stack[-count:], stack[:-count]
        names, types = ", ".join(n for n, _ in operands), ", ".join(t for _, t in operands)
        lines.append(f'  %{i} = "graphc.{word}"({names}) : ({types}) -> {T}')
        stack.append((f"%{i}", T))
    return function(f"%x: {T}", "\n".join(lines), f"{stack[0][0]} : {T}")


CASES = {
    "1 x add log": (1e-17, 1e-17),
    "x 1 add log": (1e-17, 1e-17),
    "1 x sub log": (1e-17, -1e-17),
    "x exp 1 sub": (1e-17, 1e-17),
    "1 x exp sub": (1e-17, -1e-17),
    "1 x exp add log": (800.0, 800.0),
    "1 x exp sub log": (-1e-17, math.log(1e-17)),
    "x expm1 log": (800.0, 800.0),
    "x sigmoid log": (-800.0, -800.0),
    "1 x sigmoid sub log": (800.0, -800.0),
    "x sigmoid neg log1p": (800.0, -800.0),
    "1 x sigmoid sub": (50.0, math.exp(-50)),
    "1 1 x neg exp add true_div": (-50.0, math.exp(-50)),
    "1 x neg exp add reciprocal": (-50.0, math.exp(-50)),
    "x exp 1 x exp add true_div": (800.0, None),
    "x exp x exp add log": (800.0, 800.0 + math.log(2)),
    "1 x erf sub": (7.0, math.erfc(7.0)),
    "1 x erfc sub": (1e-17, math.erf(1e-17)),
    "1 x erf add": (-7.0, math.erfc(7.0)),
    "x erfc log": (30.0, -903.9741171106439),
    "1 x erf sub log": (30.0, -903.9741171106439),
    "1 x erf add log": (-30.0, -903.9741171106439),
    "x erf neg log1p": (1e-17, math.log1p(-math.erf(1e-17))),
    "x erf log1p": (-30.0, -903.9741171106439),
}


@pytest.mark.parametrize("expression", CASES)
def test_keeps_ordinary_values(expression: str) -> None:
    assert_same(program(expression), [MODERATE], PASS, rtol=1e-9)


@pytest.mark.parametrize("expression", [key for key, (_, want) in CASES.items() if want is not None])
def test_gains_extreme_values(expression: str) -> None:
    x, want = CASES[expression]
    with context(), ir.Location.unknown():
        module = ir.Module.parse(program(expression))
        run_pipeline(module, [PASS])
        (have,) = outcome(module, [np.array([x])])
    np.testing.assert_allclose(have, [want], rtol=1e-12)


@pytest.mark.parametrize("expression", ["x exp x mul x sigmoid x mul add x x pow true_div"])
def test_nothing_is_made_for_a_divisor_without_a_logarithm(expression: str) -> None:
    """A search that finds nothing costs no operations: graphs are full of products of sums."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(program(expression))
        have = len(walk(module.operation))
        apply_rules(module, stabilize.RULES, lambda name, number: None, erase=False)
        assert len(walk(module.operation)) == have


LOGSUMEXP = """
  %0 = "graphc.exp"(%x) : (tensor<?x?xf64>) -> tensor<?x?xf64>
  %1 = "graphc.reduce_sum"(%0) {axes = array<i64: 1>} : (tensor<?x?xf64>) -> tensor<?xf64>
  %2 = "graphc.dimshuffle"(%1) {order = array<i64: 0, -1>} : (tensor<?xf64>) -> tensor<?x1xf64>
  %3 = "graphc.log"(%2) : (tensor<?x1xf64>) -> tensor<?x1xf64>
  %4 = "graphc.log"(%1) : (tensor<?xf64>) -> tensor<?xf64>
  %5 = "graphc.true_div"(%0, %2) : (tensor<?x?xf64>, tensor<?x1xf64>) -> tensor<?x?xf64>
  %6 = "graphc.log"(%5) : (tensor<?x?xf64>) -> tensor<?x?xf64>"""
RESULTS = "%3 : tensor<?x1xf64>; %4 : tensor<?xf64>; %5 : tensor<?x?xf64>; %6 : tensor<?x?xf64>"


def test_log_sum_exp() -> None:
    text = function("%x: tensor<?x?xf64>", LOGSUMEXP, RESULTS)
    new = assert_same(text, [np.random.default_rng(1).normal(size=(3, 4))], PASS)
    assert "graphc.softmax" in new and "graphc.log_softmax" in new
    assert_same(text, [np.zeros((3, 0))], PASS)
    again = assert_same(new, [np.random.default_rng(1).normal(size=(3, 4))], PASS)
    assert again.count("graphc.reduce_max") == new.count("graphc.reduce_max")


def test_log_sum_exp_of_extreme_rows() -> None:
    inf = np.inf
    rows = np.array([[1000, 1000.0], [-inf, -inf], [inf, 0], [-1000, -inf], [np.nan, 0]])
    with context(), ir.Location.unknown():
        module = ir.Module.parse(function("%x: tensor<?x?xf64>", LOGSUMEXP, RESULTS))
        run_pipeline(module, [PASS])
        have = outcome(module, [rows])
    np.testing.assert_allclose(have[1], [1000 + math.log(2), -inf, inf, -1000, np.nan])
    np.testing.assert_array_equal(have[0][:, 0], have[1])


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize("scale", ["exp", "softplus"])
def test_slopes_of_parameters_of_one_vector(first: int, scale: str) -> None:
    """Of slices that overlap those of the other factors or do not: the same numbers, and a stable form where
    both can underflow together.
    """
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %first = arith.constant {first} : index
  %zeros = arith.constant dense<0.0> : tensor<3xf64>
  %z = "graphc.slice"(%x, %c0, %c3, %c1) : (tensor<5xf64>, index, index, index) -> tensor<3xf64>
  %s = "graphc.slice"(%x, %first, %c1, %c1) : (tensor<5xf64>, index, index, index) -> tensor<1xf64>
  %0 = "graphc.{scale}"(%s) : (tensor<1xf64>) -> tensor<1xf64>
  %1 = "graphc.true_div"(%r, %0) : (tensor<7xf64>, tensor<1xf64>) -> tensor<7xf64>
  %2 = "graphc.take"(%z, %i) {{axis = 0 : i64}} : (tensor<3xf64>, tensor<7xi64>) -> tensor<7xf64>
  %3 = "graphc.sigmoid"(%2) : (tensor<7xf64>) -> tensor<7xf64>
  %4 = "graphc.mul"(%1, %3) : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  %5 = "graphc.put"(%zeros, %4, %i) {{accumulate = true, axis = 0 : i64}} :
    (tensor<3xf64>, tensor<7xf64>, tensor<7xi64>) -> tensor<3xf64>
  %6 = "graphc.exp"(%s) : (tensor<1xf64>) -> tensor<1xf64>
  %7 = "graphc.mul"(%5, %6) : (tensor<3xf64>, tensor<1xf64>) -> tensor<3xf64>
  %8 = "graphc.mul"(%4, %3) : (tensor<7xf64>, tensor<7xf64>) -> tensor<7xf64>
  %9 = "graphc.reduce_sum"(%8) {{axes = array<i64: 0>}} : (tensor<7xf64>) -> tensor<f64>
  %10 = "graphc.dimshuffle"(%9) {{order = array<i64: -1>}} : (tensor<f64>) -> tensor<1xf64>
  %11 = "graphc.mul"(%10, %0) : (tensor<1xf64>, tensor<1xf64>) -> tensor<1xf64>"""
    arguments = "%x: tensor<5xf64>, %r: tensor<7xf64>, %i: tensor<7xi64>"
    results = "%4 : tensor<7xf64>; %7 : tensor<3xf64>; %11 : tensor<1xf64>"
    rng = np.random.default_rng(first)
    inputs = [rng.normal(size=5), rng.normal(size=7), rng.integers(0, 3, 7)]
    assert_same(function(arguments, body, results), inputs, PASS, rtol=1e-12)
    elements = function(arguments, body, results.split(";")[0])
    made = assert_same(elements, inputs, PASS, rtol=1e-12)
    before = elements.count("graphc.softplus")
    assert (made.count("graphc.softplus") > before) == (first < 3)
