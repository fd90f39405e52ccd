# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled modules with conditionals compute what the interpreter computes, with poisoned memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from conditional_modules import flipped, generate
from pipelines import compile_text, interpret
from scan_modules import Limits, ScanCase, assert_close

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.pipeline import FAST_RUN, PIPELINES, pipeline
from graphc.backends.interpret.interpreter import run_function
from graphc.passes import discover, find
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools import legality

MODES = sorted(PIPELINES)
GRAPH_PASSES = [flag for flag in discover() if find(flag).stage == "graph"]
TIDY = "canonicalize,cse"
STRAIGHT = Limits(scans=0)


@pytest.fixture(autouse=True)
def poison() -> Iterator[None]:
    with graphc.config.change_flags(poison_memory=True):
        yield


def check(case: ScanCase, mode: str) -> None:
    """Compiles a case and compares it with the interpreter, for both values of its conditions."""
    f = compile_text(case.text, pipeline(mode), 1)
    for inputs in flipped(case):
        assert_close(f(*inputs), interpret(case.text, inputs))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(8))
def test_random_conditionals(mode: str, seed: int) -> None:
    check(generate(Random(seed), STRAIGHT), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(100, 110))
def test_random_conditionals_and_loops(mode: str, seed: int) -> None:
    check(generate(Random(seed)), mode)


@pytest.mark.parametrize("flag", GRAPH_PASSES)
def test_a_pass_alone(flag: str) -> None:
    """Every pass of the graph stage, on modules as they come and after upstream's clean-up."""
    with new_context(), ir.Location.unknown(), np.errstate(all="ignore"):
        for seed in (1, 4, 6, 9):
            case, expected = expectations(seed)
            for entries in ([flag], [TIDY, flag]):
                module = ir.Module.parse(case.text)
                run_pipeline(module, entries, verify_each=True, check=legality.check)
                for inputs, want in zip(flipped(case), expected, strict=True):
                    assert_close(run_function(ir.Module.parse(str(module)), inputs), want)


@cache
def expectations(seed: int) -> tuple[ScanCase, list[list[Any]]]:
    """A case, and what it computes for both values of its conditions."""
    case = generate(Random(seed), STRAIGHT if seed % 4 == 0 else None)
    return case, [interpret(case.text, inputs) for inputs in flipped(case)]


def test_cases_cover_what_conditionals_can_be() -> None:
    found = set().union(*(generate(Random(seed)).features for seed in range(60)))
    wanted = "conditional nested_conditional branch_in_loop loop_in_branch sized unread joined"
    assert set(wanted.replace("_", "-").split()) <= {name.replace("_", "-") for name in found}


_BRANCHES = """
func.func @main(%x: tensor<?xf64>, %k: tensor<?xi64>, %c: tensor<i1>) -> (tensor<?xf64>, tensor<f64>) {
  %p = tensor.extract %c[] : tensor<i1>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.if %p -> (tensor<?xf64>, tensor<f64>) {
    %m = tensor.dim %k, %c0 : tensor<?xi64>
    %ok = arith.cmpi slt, %c1, %m : index
    "graphc.check"(%ok, %c1, %m) {message = "no element {given} of {expected}", error = "IndexError"}
      : (i1, index, index) -> ()
    %i = tensor.extract %k[%c1] : tensor<?xi64>
    %n = arith.index_cast %i : i64 to index
    %some = arith.cmpi sge, %n, %c0 : index
    "graphc.check"(%some, %n, %c0) {message = "negative: {given}", error = "ValueError"}
      : (i1, index, index) -> ()
    %one = arith.constant dense<1.0> : tensor<f64>
    %o = "graphc.broadcast_to"(%one, %n) : (tensor<f64>, index) -> tensor<?xf64>
    %e = "graphc.exp"(%o) : (tensor<?xf64>) -> tensor<?xf64>
    %s = "graphc.reduce_sum"(%e) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
    scf.yield %e, %s : tensor<?xf64>, tensor<f64>
  } else {
    %e = "graphc.sin"(%x) : (tensor<?xf64>) -> tensor<?xf64>
    %z = arith.constant dense<0.0> : tensor<f64>
    scf.yield %e, %z : tensor<?xf64>, tensor<f64>
  }
  return %r#0, %r#1 : tensor<?xf64>, tensor<f64>
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_only_the_chosen_region_checks_and_takes_memory(mode: str) -> None:
    f = compile_text(_BRANCHES, pipeline(mode), 1)
    x, yes, no = np.arange(3.0), np.array(True), np.array(False)
    result, total = f(x, np.array([7, 2]), yes)
    np.testing.assert_allclose(result, np.full(2, np.e))
    np.testing.assert_allclose(total, 2 * np.e)
    with pytest.raises(IndexError, match="no element 1 of 1"):
        f(x, np.array([7]), yes)
    with pytest.raises(ValueError, match="negative: -4"):
        f(x, np.array([7, -4]), yes)
    for k in ([7], [7, -4], [7, 1 << 50]):
        np.testing.assert_allclose(f(x, np.array(k), no)[0], np.sin(x))


_SEARCH = """
func.func @main(%x: tensor<f64>, %n: tensor<i64>) -> tensor<1xf64> {
  %i = tensor.extract %n[] : tensor<i64>
  %steps = arith.index_cast %i : i64 to index
  %half = arith.constant dense<0.5> : tensor<f64>
  %one = arith.constant dense<1.0> : tensor<1xf64>
  %h0 = "graphc.dimshuffle"(%x) {order = array<i64: -1>} : (tensor<f64>) -> tensor<1xf64>
  %s = "graphc.scan"(%steps) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<f64>
    %a = "graphc.scan_prev"(%t) {state = "a", tap = -1 : i64} : (index) -> tensor<f64>
    %step = "graphc.sub"(%h, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %new = "graphc.sqr"(%step) : (tensor<f64>) -> tensor<f64>
    %old = "graphc.sqr"(%h) : (tensor<f64>) -> tensor<f64>
    %less = "graphc.lt"(%new, %old) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %p = tensor.extract %less[] : tensor<i1>
    %r:2 = scf.if %p -> (tensor<f64>, tensor<f64>) {
      scf.yield %step, %a : tensor<f64>, tensor<f64>
    } else {
      %b = "graphc.mul"(%a, %half) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %c = "graphc.sin"(%b) : (tensor<f64>) -> tensor<f64>
      scf.yield %h, %c : tensor<f64>, tensor<f64>
    }
    "graphc.scan_carry"(%h0, %r#0) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>,
      keep = "last", rows = 1 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_carry"(%one, %r#1) {state = "a", taps = array<i64: -1>, writes = array<i64: 0>,
      keep = "last", rows = 0 : i64} : (tensor<1xf64>, tensor<f64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "search", reverse = false} : (index) -> !graphc.loop
  %last = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<1xf64>
  return %last : tensor<1xf64>
}
"""


def lowered(text: str, mode: str, last: str) -> str:
    """The module after the passes up to one."""
    entries = [text for text, _ in pipeline(mode)]
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, entries[: entries.index(last) + 1])
        return str(module)


def test_a_scalar_search_in_a_loop_stays_in_registers() -> None:
    text = lowered(_SEARCH, "fast_run", "graphc-plan-memory{record=true}")
    loop = text[text.index("scf.for %") : text.index("memref.store", text.index("scf.for %"))]
    assert "scf.if" in loop or "arith.select" in loop
    assert not re.search(r"memref\.(load|alloc|copy)", loop)
    for x, n in ((3.3, 0), (3.3, 40)):
        inputs = [np.array(x), np.array(n)]
        (result,) = compile_text(_SEARCH, FAST_RUN, 1)(*inputs)
        np.testing.assert_allclose(result, interpret(_SEARCH, inputs)[0], rtol=1e-12)


_ROWS = """
func.func @main(%x: tensor<?xf64>, %w: tensor<?x?xf64>, %n: tensor<i64>) -> tensor<?x?xf64> {
  %i = tensor.extract %n[] : tensor<i64>
  %steps = arith.index_cast %i : i64 to index
  %zero = arith.constant dense<0.0> : tensor<f64>
  %h0 = "graphc.dimshuffle"(%x) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
  %s = "graphc.scan"(%steps) ({
  ^bb0(%t: index):
    %h = "graphc.scan_prev"(%t) {state = "h", tap = -1 : i64} : (index) -> tensor<?xf64>
    %sum = "graphc.reduce_sum"(%h) {axes = array<i64: 0>} : (tensor<?xf64>) -> tensor<f64>
    %less = "graphc.lt"(%sum, %zero) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %p = tensor.extract %less[] : tensor<i1>
    %r = scf.if %p -> tensor<?xf64> {
      %row = "graphc.dimshuffle"(%h) {order = array<i64: -1, 0>} : (tensor<?xf64>) -> tensor<1x?xf64>
      %m = "graphc.matmul"(%row, %w) {transpose_a = false, transpose_b = false}
        : (tensor<1x?xf64>, tensor<?x?xf64>) -> tensor<1x?xf64>
      %y = "graphc.dimshuffle"(%m) {order = array<i64: 1>} : (tensor<1x?xf64>) -> tensor<?xf64>
      %e = "graphc.tanh"(%y) : (tensor<?xf64>) -> tensor<?xf64>
      scf.yield %e : tensor<?xf64>
    } else {
      %e = "graphc.sin"(%h) : (tensor<?xf64>) -> tensor<?xf64>
      %f = "graphc.sub"(%e, %x) : (tensor<?xf64>, tensor<?xf64>) -> tensor<?xf64>
      scf.yield %f : tensor<?xf64>
    }
    "graphc.scan_carry"(%h0, %r) {state = "h", taps = array<i64: -1>, writes = array<i64: 0>, keep = "steps"}
      : (tensor<1x?xf64>, tensor<?xf64>) -> ()
    "graphc.scan_end"() : () -> ()
  }) {name = "rows", reverse = false} : (index) -> !graphc.loop
  %all = "graphc.scan_trace"(%s) {state = "h"} : (!graphc.loop) -> tensor<?x?xf64>
  return %all : tensor<?x?xf64>
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_computed_in_their_place(mode: str) -> None:
    """Both regions write the row of the caller's array: nothing is allocated or copied in an iteration."""
    text = lowered(_ROWS, mode, "graphc-hoist-allocations")
    loop = text[text.index("scf.for %") :]
    assert "scf.if" in loop
    assert not re.search(r"memref\.copy", loop[: loop.index("return")])
    assert "graphc_mark" not in text
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(5), rng.standard_normal((5, 5)), np.array(7)]
    (result,) = compile_text(_ROWS, pipeline(mode), 1)(*inputs)
    np.testing.assert_allclose(result, interpret(_ROWS, inputs)[0], rtol=1e-9)


# -- from graphs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_branches_of_other_sizes(mode: str) -> None:
    """The condition is needed for the size of the result, with the test of the positions that it reads."""
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    f = graphc.function([x, y, i], graphc.ifelse(x[i].sum() > 0, pt.exp(x), y[1:] * 2), mode=mode)
    a, b = np.array([1.0, -2.0, 3.0]), np.arange(5.0)
    np.testing.assert_allclose(f(a, b, np.array([0, 2])), np.exp(a))
    np.testing.assert_allclose(f(a, b, np.array([0, 1])), b[1:] * 2)
    with pytest.raises(IndexError, match="index 10000000000 is out of bounds"):
        f(a, b, np.array([10**10]))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("nested", [False, True])
def test_a_branch_is_another_result(mode: str, nested: bool) -> None:
    """The value of one side is not computed in the memory of the other, of which a cast stands there."""
    x, flag, small = pt.dmatrix("x"), pt.bvector("flag"), pt.tensor("small", dtype="float64", shape=(1, 1))
    for other in (pt.pad(small, ((0, 0), (0, 3)), mode="edge"), pt.tile(small * 2, (1, 4)) / 2):
        chosen = graphc.ifelse(flag.any(), pt.exp(x), other)
        if nested:
            chosen = graphc.ifelse(small.shape[0] > 2, pt.exp(-x), chosen)
        f = graphc.function([x, flag, small], [chosen, other], mode=mode)
        for taken in (False, True):
            at, full = np.ones((1, 1)), np.full((1, 4), 1.5)
            found = f(at, np.array([0, taken], "int8"), np.full((1, 1), 1.5))
            np.testing.assert_allclose(found[0], np.exp(at) if taken else full)
            np.testing.assert_allclose(found[1], full)


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_taken_or_not(mode: str) -> None:
    """A trust-region method on a quadratic function, and its gradient, against NumPy."""
    scale = np.array([1.0, 10.0])

    def step(p: Any, r: Any) -> Any:
        new = p - r * 2 * p * scale
        better = (new * new * scale).sum() < (p * p * scale).sum()
        return graphc.ifelse(better, new, p), graphc.ifelse(better, r * 1.5, r * 0.5)

    p0, r0 = pt.vector("p0"), pt.scalar("r0")
    points, _ = graphc.scan(step, outputs_info=[p0, r0], n_steps=12, return_updates=False)
    slope = graphc.grad((points[-1] ** 2).sum(), p0)
    f = graphc.function([p0, r0], [points[-1], slope], mode=mode)

    p, r, factor = np.array([1.0, 1.0]), 0.3, np.ones(2)
    for _ in range(12):
        new = p - r * 2 * p * scale
        if (new * new * scale).sum() < (p * p * scale).sum():
            factor, p, r = factor * (1 - 2 * r * scale), new, r * 1.5
        else:
            r *= 0.5
    last, derivative = f(np.array([1.0, 1.0]), np.array(0.3))
    np.testing.assert_allclose(last, p)
    np.testing.assert_allclose(derivative, 2 * p * factor)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_memory_of_arguments_is_not_taken_too_early(mode: str, sign: float) -> None:
    """Either side may read what the other one overwrites."""
    x, y, c = pt.vector("x"), pt.vector("y"), pt.scalar("c")
    results = [
        [graphc.ifelse(c > 0, x[::-1] * 2, x)],
        [graphc.ifelse(c > 0, x, y) + x],
        [graphc.ifelse(c > 0, x[::-1] * 1.5, y), x + 1],
        [pt.set_subtensor(x[:1], graphc.ifelse(c > 0, x[1:2], y[2:3]))],
    ]
    a, b = np.arange(4.0), np.arange(4.0) * 7
    for outputs in results:
        f = graphc.function([graphc.In(x, mutable=True), y, c], outputs, mode=mode, on_unused_input="ignore")
        g = graphc.function([x, y, c], outputs, mode="reference", on_unused_input="ignore")
        assert_close(f(a.copy(), b, np.array(sign)), g(a, b, np.array(sign)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sizes_that_another_branch_found_out_first(mode: str, sign: float) -> None:
    """Second derivatives of a loop in a branch: their loops run as often as its first result is long."""
    x, h = pt.vector("x"), pt.scalar("h")
    rows = graphc.scan(lambda a, b: pt.tanh(a * b), sequences=x, outputs_info=h, return_updates=False)
    slopes = graphc.grad(pt.sin(graphc.ifelse(h > 0, rows, x)).sum(), [x, h], disconnected_inputs="ignore")
    total = sum((slope * pt.cos(slope + 0.3)).sum() for slope in slopes)
    values, eps = np.array([0.3, -0.5, 0.2, 0.7]), 1e-6
    value = graphc.function([x, h], total)
    found, at_h = graphc.function([x, h], graphc.grad(total, [x, h]), mode=mode)(values, sign * 0.7)
    for i, want in enumerate(found):
        step = eps * np.eye(4)[i]
        difference = value(values + step, sign * 0.7) - value(values - step, sign * 0.7)
        np.testing.assert_allclose(want, difference / (2 * eps), rtol=1e-6, atol=1e-8)
    difference = value(values, sign * 0.7 + eps) - value(values, sign * 0.7 - eps)
    np.testing.assert_allclose(at_h, difference / (2 * eps), rtol=1e-6, atol=1e-8)
