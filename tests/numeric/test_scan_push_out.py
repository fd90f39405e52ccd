# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes that move work out of scans keep what random scans and gradients of networks compute."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from scan_push_out_bodies import BodyCase

import graphc
import graphc.tensor as pt
from graphc.backends.interpret.interpreter import run_function
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.scan_view import ScanView, scans
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.legality import check

PASSES = [f"graphc-scan-push-out-{name}" for name in ("seq", "dot1", "output")]
TIDY = "canonicalize,cse"


def _compare(have: list[Any], want: list[Any]) -> None:
    for a, b in zip(have, want, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        tolerance = 2e-3 if a.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("entries", [[flag] for flag in PASSES] + [[TIDY, *PASSES, TIDY]], ids=str)
@pytest.mark.parametrize("block", range(3))
def test_random_scans(entries: list[str], block: int) -> None:
    """Zero, one and more iterations, both directions, stop conditions, static and dynamic sizes."""
    moved = 0
    with new_context(), ir.Location.unknown():
        for seed in range(12 * block, 12 * block + 12):
            rng = Random(seed)
            element = rng.choice(["f64", "f64", "f32", "complex<f64>"])
            case = BodyCase(rng, rng.choice([0, 1, 2, 5]), element)
            module = ir.Module.parse(case.text)
            expected = run_function(module, case.inputs)
            report = run_pipeline(module, entries, verify_each=True, check=check)
            moved += sum(sum(run.statistics.values()) for run in report.runs)
            _compare(run_function(module, case.inputs), expected)
    assert moved


@pytest.mark.parametrize("flag", PASSES)
def test_nothing_is_left_to_do(flag: str) -> None:
    with new_context(), ir.Location.unknown():
        for seed in range(100, 115):
            case = BodyCase(Random(seed), 3)
            module = ir.Module.parse(case.text)
            run_pipeline(module, [TIDY, flag, TIDY])
            before = str(module)
            run_pipeline(module, [flag, TIDY])
            assert str(module) == before


# -- gradients -----------------------------------------------------------------------------------------------


def _network(batch: bool, bias: bool, backwards: bool, dtype: str) -> tuple[list[Any], list[Any]]:
    """Inputs, and cost and gradients, of a recurrent network."""
    x = pt.tensor("x", dtype=dtype, shape=(None,) * (3 if batch else 2))
    h0 = pt.tensor("h0", dtype=dtype, shape=(None,) * (2 if batch else 1))
    w, u = (pt.tensor(name, dtype=dtype, shape=(None, None)) for name in "wu")
    b = pt.tensor("b", dtype=dtype, shape=(None,))

    def step(row: Any, h: Any, *weights: Any) -> Any:
        total = pt.dot(h, weights[0]) + pt.dot(row, weights[1])
        return pt.tanh(total + weights[2] if bias else total)

    weights = [w, u, b] if bias else [w, u]
    hs = graphc.scan(
        step,
        sequences=[x],
        outputs_info=[h0],
        non_sequences=weights,
        go_backwards=backwards,
        return_updates=False,
    )
    cost = (hs**2).sum()
    return [x, h0, *weights], [cost, *graphc.grad(cost, [*weights, h0, x])]


def _values(batch: bool, bias: bool, steps: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(steps)
    shapes: list[tuple[int, ...]] = [(steps, 2, 3), (2, 4)] if batch else [(steps, 3), (4,)]
    shapes += [(4, 4), (3, 4)] + ([(4,)] if bias else [])
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradients_of_networks(batch: bool, bias: bool, backwards: bool, dtype: str) -> None:
    """The loops are left with one product and one state each: the recurrence."""
    inputs, outputs = _network(batch, bias, backwards, dtype)
    text = emit_module(FunctionGraph(inputs, outputs)).text
    with new_context(), ir.Location.unknown():
        before, module = ir.Module.parse(text), ir.Module.parse(text)
        run_pipeline(module, [TIDY, *PASSES, TIDY], verify_each=True)
        loops = [ScanView(op) for op in scans(module.operation)]
        assert len(loops) == 2
        for view in loops:
            assert len(view.carries()) == 1 and len(view.collects()) <= 1
            assert sum(op.name == "graphc.matmul" for op in view.work()) == 1
        for steps in (0, 1, 4):
            values = _values(batch, bias, steps, dtype)
            _compare(run_function(module, values), run_function(before, values))


# -- sums of products ----------------------------------------------------------------------------------------

UPDATES = {
    "outer": lambda w, a, b: w + pt.outer(a, b),
    "subtracted": lambda w, a, b: w - pt.outer(a, 2 * b),
    "column and row": lambda w, a, b: b[None, :] * a[:, None] + w,
    "two": lambda w, a, b: w + pt.outer(a, b) + pt.outer(a * a, b),
    "transposed": lambda w, a, b: w + pt.outer(b, a).T,
}


@pytest.mark.parametrize(
    ("start", "dtype"), [("given", "float64"), ("zeros", "float64"), ("computed", "float32")]
)
@pytest.mark.parametrize("name", UPDATES)
def test_sums_of_outer_products(name: str, start: str, dtype: str) -> None:
    """Of unknown sizes: one matrix product, which fails and does not where the loop does."""
    a, b, w = (pt.matrix(each, dtype=dtype) for each in "abw")
    first = {"given": w, "computed": pt.exp(w), "zeros": pt.zeros((a.shape[1], b.shape[1]), dtype=dtype)}
    for backwards in (False, True):
        rows = graphc.scan(
            lambda x, y, s: UPDATES[name](s, x, y),
            sequences=[a, b],
            outputs_info=[first[start]],
            go_backwards=backwards,
            return_updates=False,
        )
        outputs = [rows[-1], rows[-1] * 2]
        function = graphc.function([a, b, w], outputs, on_unused_input="ignore")
        reference = graphc.function([a, b, w], outputs, mode="reference", on_unused_input="ignore")
        assert "graphc.scan" not in function.ir_stages()["graph (optimised)"]
        rng = np.random.default_rng(0)
        for steps in (1, 5):
            values = [rng.normal(size=shape).astype(dtype) for shape in ((steps, 3), (steps, 4), (3, 4))]
            _compare(function(*values), reference(*values))
        with pytest.raises(IndexError):
            function(np.ones((0, 3), dtype), np.ones((0, 4), dtype), np.ones((3, 4), dtype))
        if start != "zeros":
            with pytest.raises(ValueError, match="sizes"):
                function(np.ones((2, 3), dtype), np.ones((2, 4), dtype), np.ones((3, 5), dtype))
