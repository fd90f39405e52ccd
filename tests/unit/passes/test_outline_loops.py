# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop nests of long functions move to functions of their own, and compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.passes.buffer.outline_loops import OutlineLoops
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context

from ._buffer_machine import Machine
from ._buffer_modules import generate


def arguments(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 40)), int(rng.integers(4, 40))
    return [np.asarray(n), np.zeros(m), np.asarray(1), np.zeros(4)]


@pytest.mark.parametrize("planned", [False, True])
def test_parts_compute_what_the_loops_did(planned: bool) -> None:
    moved = 0
    for seed in range(40):
        with new_context(), ir.Location.unknown():
            text = generate(seed, static=False)
            before = ir.Module.parse(text)
            after = ir.Module.parse(text)
            memory = ["graphc-plan-memory{record=true}"] if planned else []
            outline = OutlineLoops(minimum=1)
            run_pipeline(after, [*memory, outline])
            after.operation.verify()
            moved += outline.statistics.get("parts", 0)
            given, expected = arguments(seed), arguments(seed)
            Machine(before).run("main", expected)
            Machine(after).run("main", given)
            np.testing.assert_array_equal(given[3], expected[3], err_msg=f"{text}\n{after}")
    assert moved > 40


@pytest.fixture(scope="module")
def long_graph() -> tuple[list[Any], list[Any]]:
    """Many loops: each one needs the sum that the one before it gives."""
    x, y = pt.dvector("x"), pt.dvector("y")
    state = x
    for _ in range(50):
        state = state * y + x * state.sum()
    return [x, y], [state, state.sum()]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
def test_long_functions_are_divided(long_graph: tuple[list[Any], list[Any]], mode: str) -> None:
    inputs, outputs = long_graph
    f = graphc.function(inputs, outputs, mode=mode)
    stages = dict(f.ir_stages())
    # Equal loops share a function in kernels that are divided.
    assert len(re.findall(r"call void @graphc_(?:part|call)_", stages["llvm"])) > 45
    reference = graphc.function(inputs, outputs, mode="reference")
    for n in (0, 1, 7, 100):
        x, y = np.linspace(0, 1e-3, n), np.linspace(-1, 1, n)
        for got, expected in zip(f(x, y), reference(x, y), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_short_functions_stay_whole() -> None:
    x = pt.dvector("x")
    f = graphc.function([x], [x + 1, x * x.sum()])
    assert "graphc_part_" not in dict(f.ir_stages())["llvm"]


def test_loops_in_branches_are_moved() -> None:
    """Each conditional has two; without that, code generation takes twenty milliseconds for each."""
    x, c = pt.dvector("x"), pt.bvector("c")
    h = x
    for i in range(30):
        h = graphc.ifelse(c[i] > 0, pt.tanh(h), h * 0.5)
    f = graphc.function([x, c], h, mode="fast_compile")
    assert len(re.findall(r"call void @graphc_(?:part|call)_", dict(f.ir_stages())["llvm"])) > 50
    reference = graphc.function([x, c], h, mode="reference")
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=7), rng.integers(0, 2, 30).astype("int8")
        np.testing.assert_allclose(f(*values), reference(*values), rtol=1e-13)
