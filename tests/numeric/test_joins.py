# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins compute what NumPy's do, in place or not, in every mode."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import Choices, Graph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from join_graphs import JoinGraph, build
from pipelines import compile_text, interpret, module_of, with_options, without

from graphc.pipelines import FAST_COMPILE, FAST_RUN, Entry

FLAG = "graphc-join-buffer-elimination"
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
VARIANTS: dict[str, list[Entry]] = {
    "on": FAST_RUN,
    "off": without(FLAG),
    "one is enough": with_options(FLAG, "min-eligible=1"),
    "on, unfused": [entry for entry in FAST_RUN if entry[0] != "graphc-fusion"],
    "on, no sizes known": without("graphc-shape-simplification"),
    "fast_compile": FAST_COMPILE,
}


def taken_apart(graph: JoinGraph) -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """The module of a graph, the values of its arguments, and NumPy's results."""
    variables, values = map(list, zip(*graph.inputs, strict=True))
    results, expected = map(list, zip(*graph.outputs, strict=True))
    return *module_of(Graph(variables, values, results)), expected


def check(graph: JoinGraph, variants: list[str]) -> None:
    text, arguments, expected = taken_apart(graph)
    for variant in variants:
        found = compile_text(text, VARIANTS[variant], opt_level=1)(*arguments)
        _compare(found, expected, variant)


def _compare(found, expected, what):
    for i, (have, want) in enumerate(zip(found, expected, strict=True)):
        assert have.dtype == want.dtype and have.shape == want.shape, f"output {i}, {what}"
        tolerance = 1e-4 if want.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(have, want, tolerance, tolerance, err_msg=f"output {i}, {what}")


def check_meaning(graph: JoinGraph, option: str) -> None:
    """The pass keeps what a module means, and every element of every buffer is written."""
    from graphc.passes._base import run_pipeline
    from graphc.passes._interpret import run_function
    from graphc_dialects._mlir import ir
    from graphc_dialects.dialect import new_context

    text, arguments, expected = taken_apart(graph)
    _compare(map(np.asarray, interpret(text, arguments)), expected, "before")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        passes = ["graphc-shape-simplification", "graphc-insert-checks", f"{FLAG}{{min-eligible={option}}}"]
        run_pipeline(module, passes, check_legality=True, verify_each=True)
        _compare(map(np.asarray, run_function(module, arguments)), expected, "after")


# 500 graphs in all: these are compiled with the pass and without it, those below are interpreted.
@pytest.mark.parametrize("seed", range(60))
def test_seeded_graphs(seed):
    others = ["fast_compile"] if seed < 12 else []
    check(build(Choices.seeded(seed), depth=3), ["on", "off", *others])


@pytest.mark.parametrize("first", range(100, 540, 20))
def test_seeded_meaning(first):
    for seed in range(first, first + 20):
        check_meaning(build(Choices.seeded(seed)), "1" if seed % 2 else "2")


@st.composite
def graphs(draw):
    return build(Choices(lambda low, high: draw(st.integers(low, high))))


@pytest.mark.fuzz
@settings(suppress_health_check=SLOW, deadline=None)
@given(variant=st.sampled_from(list(VARIANTS)), graph=graphs())
def test_random_graphs(variant, graph):
    check(graph, [variant])


@pytest.mark.fuzz
@settings(suppress_health_check=SLOW, deadline=None)
@given(graph=graphs())
def test_random_meaning(graph):
    check_meaning(graph, "1")
