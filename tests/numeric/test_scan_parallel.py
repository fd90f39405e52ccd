# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled recurrences compute what the interpreter computes, and their sums are as accurate as a loop's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import pytest
from pipelines import compile_text, interpret

from graphc.backends.cpu.pipeline import FAST_COMPILE, FAST_RUN
from graphc.graph.tensor.type import tolerances

STEPS = [0, 1, 2, 3, 4, 7, 8, 9, 16, 25]
DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "i64": np.int64,
    "i8": np.int8,
    "ui8": np.uint8,
    "i1": np.bool_,
    "complex<f64>": np.complex128,
}
KINDS = {
    "f64": ["add", "mul", "max", "min"],
    "f32": ["add", "max"],
    "i64": ["add", "mul", "max", "and", "or"],
    "i8": ["add", "min"],
    "ui8": ["add", "max", "min"],
    "i1": ["add", "mul", "max", "and", "or"],
    "complex<f64>": ["add", "mul"],
}
ROWS: dict[str, tuple[int, ...]] = {
    "": (),
    "1": (1,),
    "3": (3,),
    "2x2": (2, 2),
    "11": (11,),
    "?": (5,),
    "?x2": (3, 2),
}


def _type(lead: str, row: str, element: str) -> str:
    return f"tensor<{'x'.join(part for part in (lead, row, element) if part)}>"


class Call(NamedTuple):
    """A recurrence: its op, its operands (`n`: a row for each step, `1`: one row) and its attributes."""

    op: str
    operands: Sequence[str]
    flags: str


def arguments(calls: Sequence[Call]) -> list[tuple[int, str]]:
    """Position and kind of all operands; calls share those that are alike."""
    return sorted({place for call in calls for place in enumerate(call.operands)})


def module(calls: Sequence[Call], element: str, row: str) -> str:
    """A function of the operands, the initial row and a vector whose length is the number of steps."""
    types = {kind: _type({"n": "?", "1": "1"}[kind], row, element) for kind in "n1"}
    result, given = _type("?", row, element), arguments(calls)
    parameters = ", ".join(f"%x{kind}_{i}: {types[kind]}" for i, kind in given)
    lines = []
    for number, call in enumerate(calls):
        names = ", ".join(f"%x{kind}_{i}" for i, kind in enumerate(call.operands))
        taken = ", ".join(types[kind] for kind in call.operands)
        lines.append(
            f'  %r{number} = "graphc.{call.op}"({names}, %h0, %n) {{{call.flags}}} :\n'
            f"    ({taken}, {types['1']}, index) -> {result}"
        )
    body, results = "\n".join(lines), ", ".join([result] * len(calls))
    return f"""
func.func @main({parameters}, %h0: {types["1"]}, %length: tensor<?xi8>) -> ({results}) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %length, %c0 : tensor<?xi8>
{body}
  return {", ".join(f"%r{i}" for i in range(len(calls)))} : {results}
}}"""


def flags(reverse: bool, keep: bool, reassociate: bool) -> str:
    values = {"reverse": reverse, "keep_initial": keep, "reassociate": reassociate}
    return ", ".join(f"{name} = {str(value).lower()}" for name, value in values.items())


@cache
def _compiled(text: str, fast: bool) -> Any:
    return compile_text(text, FAST_RUN if fast else FAST_COMPILE)


def _values(shape: tuple[int, ...], element: str, rng: Any) -> Any:
    dtype = np.dtype(DTYPES[element])
    if dtype.kind == "b":
        return rng.random(shape) < 0.4
    low = 0 if dtype.kind == "u" else -3
    data = np.asarray(np.round(rng.uniform(low, 3, shape), 2)).astype(dtype)
    return data + 1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else data


def check(calls: Sequence[Call], element: str, row: str, fast: bool = True) -> None:
    text = module(calls, element, row)
    for steps in STEPS:
        rng = np.random.default_rng(steps)
        shapes = [({"n": steps, "1": 1}[kind], *ROWS[row]) for _, kind in arguments(calls)]
        inputs = [_values(shape, element, rng) for shape in [*shapes, (1, *ROWS[row])]]
        inputs.append(np.zeros(steps, np.int8))
        results = zip(calls, interpret(text, inputs), _compiled(text, fast)(*inputs), strict=True)
        for call, want, have in results:
            what = f"{call}, {steps} steps"
            assert want.dtype == have.dtype and want.shape == have.shape, what
            if want.dtype.kind in "fc":
                relative, absolute = tolerances(want.dtype)
                np.testing.assert_allclose(have, want, relative, absolute, err_msg=what)
            else:
                np.testing.assert_array_equal(have, want, err_msg=what)


@pytest.mark.parametrize("row", ["", "3", "?"])
@pytest.mark.parametrize("element", KINDS)
def test_cumulative(element: str, row: str) -> None:
    cases = product(KINDS[element], (False, True))
    calls = [
        Call("cumulative", "n", f'kind = "{k}", {flags(turned, not turned, False)}') for k, turned in cases
    ]
    check(calls, element, row)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("operand", ["n", "1"])
def test_rows_and_order(operand: str, row: str) -> None:
    cases = product((False, True), repeat=2)
    calls = [Call("cumulative", operand, f'kind = "add", {flags(*case, False)}') for case in cases]
    check(calls, "f64", row, fast=operand == "n")


@pytest.mark.parametrize("operands", ["nn", "1n", "n1", "11"])
@pytest.mark.parametrize(
    ("element", "row"), [("f64", ""), ("f64", "3"), ("f64", "?"), ("i64", ""), ("f32", "2x2")]
)
def test_linear_recurrence(element: str, row: str, operands: str) -> None:
    cases = product((False, True), repeat=2)
    calls = [Call("linear_recurrence", operands, flags(turned, turned, free)) for turned, free in cases]
    check(calls, element, row)


def test_products_in_blocks() -> None:
    check([Call("cumulative", "n", f'kind = "mul", {flags(False, False, True)}')], "f64", "")


def test_running_sums_are_more_accurate_than_a_loop() -> None:
    text = module([Call("cumulative", "n", f'kind = "add", {flags(False, False, False)}')], "f32", "")
    x = np.random.default_rng(0).random(100_000).astype(np.float32)
    (have,) = _compiled(text, True)(x, np.zeros(1, np.float32), np.zeros(len(x), np.int8))
    exact = np.cumsum(x.astype(np.float64))
    loop = np.cumsum(x, dtype=np.float32)
    assert np.abs(have - exact).max() < np.abs(loop - exact).max()
    assert abs(have[-1] - fsum(x)) / fsum(x) < len(x) / 8 * 2.0**-24


def test_nan_and_infinity_stay_in_running_sums() -> None:
    x = np.ones(20)
    x[3], x[11] = np.inf, -np.inf
    for kind in ("add", "max", "min"):
        text = module([Call("cumulative", "n", f'kind = "{kind}", {flags(False, True, False)}')], "f64", "")
        inputs = [x if kind == "add" else np.where(x < 0, np.nan, x), np.zeros(1), np.zeros(20, np.int8)]
        np.testing.assert_array_equal(_compiled(text, True)(*inputs)[0], interpret(text, inputs)[0])


def test_sizes_are_checked_only_if_there_are_steps() -> None:
    text = module([Call("cumulative", "n", f'kind = "add", {flags(False, True, False)}')], "f64", "?")
    run = _compiled(text, True)
    with pytest.raises(ValueError, match="size 2 in dimension 1, but 3 is needed"):
        run(np.ones((4, 2)), np.ones((1, 3)), np.zeros(4, np.int8))
    with pytest.raises(ValueError, match="size 3 in dimension 0, but 4 is needed"):
        run(np.ones((3, 3)), np.ones((1, 3)), np.zeros(4, np.int8))
    np.testing.assert_array_equal(
        run(np.ones((0, 2)), np.ones((1, 3)), np.zeros(0, np.int8))[0], np.ones((1, 3))
    )


def test_cheap_operands_are_not_stored() -> None:
    from graphc.passes.run import run_pipeline
    from graphc_dialects._mlir import ir
    from graphc_dialects.dialect import new_context

    text = f"""
func.func @main(%x: tensor<?xf64>, %h0: tensor<1xf64>) -> tensor<?xf64> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf64>
  %y = "graphc.mul"(%x, %x) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
  %r = "graphc.cumulative"(%y, %h0, %n) {{kind = "add", {flags(False, True, False)}}} :
    (tensor<?xf64>, tensor<1xf64>, index) -> tensor<?xf64>
  return %r : tensor<?xf64>
}}"""
    names = [name for name, _ in FAST_RUN]
    with new_context():
        loops = ir.Module.parse(text)
        run_pipeline(loops, FAST_RUN[: names.index("graphc-linalg-to-loops") + 1])
        assert "memref.alloc" not in str(loops) and str(loops).count("scf.for") == 2
    x = np.arange(20.0)
    np.testing.assert_array_equal(
        _compiled(text, True)(x, np.ones(1))[0], np.cumsum(np.concatenate([[1.0], x * x]))
    )


@pytest.mark.parametrize("steps", ["1", "0", "5"])
def test_running_sums_in_a_loop(steps: str) -> None:
    inner, kept = f"tensor<{steps}xf64>", f"tensor<?x{steps}xf64>"
    text = f"""
func.func @main(%x: {kept}) -> {kept} {{
  %c0 = arith.constant 0 : index
  %n = arith.constant {steps} : index
  %zero = arith.constant dense<0.5> : tensor<1xf64>
  %rows = tensor.dim %x, %c0 : {kept}
  %s = "graphc.scan"(%rows) ({{
  ^bb0(%t: index):
    %xt = "graphc.scan_seq"(%x, %t) : ({kept}, index) -> {inner}
    %y = "graphc.mul"(%xt, %xt) : ({inner}, {inner}) -> {inner}
    %r = "graphc.cumulative"(%y, %zero, %n) {{kind = "add", {flags(False, False, False)}}} :
      ({inner}, tensor<1xf64>, index) -> {inner}
    %z = "graphc.exp"(%r) : ({inner}) -> {inner}
    "graphc.scan_collect"(%z) {{state = "z", keep = "steps"}} : ({inner}) -> ()
    "graphc.scan_end"() : () -> ()
  }}) {{name = "rows", reverse = false}} : (index) -> !graphc.loop
  %0 = "graphc.scan_trace"(%s) {{state = "z"}} : (!graphc.loop) -> {kept}
  return %0 : {kept}
}}"""
    x = np.random.default_rng(0).random((4, int(steps)))
    for pipeline in (FAST_RUN, FAST_COMPILE):
        (have,) = compile_text(text, pipeline)(x)
        np.testing.assert_allclose(have, interpret(text, [x])[0], rtol=1e-12)
