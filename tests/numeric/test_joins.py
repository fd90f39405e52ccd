# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joins compute what NumPy's do, in place or not, in every mode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fuzzing import examples, some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from join_graphs import Choices, JoinGraph, Pair, build
from pipelines import Graph, compile_text, interpret, module_of, with_options, without

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.pipeline import FAST_COMPILE, FAST_RUN
from graphc.backends.stages import Entry

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


def taken_apart(
    inputs: Sequence[Pair], outputs: Sequence[Pair]
) -> tuple[str, list[np.ndarray], list[np.ndarray]]:
    """The module of a graph, the values of its arguments, and NumPy's results."""
    variables, values = map(list, zip(*inputs, strict=True))
    results, expected = map(list, zip(*outputs, strict=True))
    return *module_of(Graph(variables, values, results)), expected


def _compare(found, expected, what):
    for i, (have, want) in enumerate(zip(found, expected, strict=True)):
        assert have.dtype == want.dtype and have.shape == want.shape, f"output {i}, {what}"
        tolerance = 1e-4 if want.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(have, want, tolerance, tolerance, err_msg=f"output {i}, {what}")


def check_meaning(graph: JoinGraph, option: str, before: bool = True) -> None:
    """The pass keeps what a module means, and every element of every buffer is written.

    Args:
        graph: its results are known.
        option: of the pass.
        before: compare the results without the pass too.
    """
    from graphc.backends.interpret.interpreter import run_function
    from graphc.passes.run import run_pipeline
    from graphc_dialects._mlir import ir
    from graphc_dialects.dialect import new_context
    from graphc_tools.legality import check

    text, arguments, expected = taken_apart(graph.inputs, graph.outputs)
    if before:
        _compare(map(np.asarray, interpret(text, arguments)), expected, "before")
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        passes = ["graphc-shape-simplification", "graphc-insert-checks", f"{FLAG}{{min-eligible={option}}}"]
        run_pipeline(module, passes, check=check, verify_each=True)
        _compare(map(np.asarray, run_function(module, arguments)), expected, "after")


def check_all(graphs: Sequence[JoinGraph], variants: list[str]) -> None:
    """`check` several graphs in one function."""
    text, arguments, expected = taken_apart(
        [pair for graph in graphs for pair in graph.inputs],
        [pair for graph in graphs for pair in graph.outputs],
    )
    for variant in variants:
        found = compile_text(text, VARIANTS[variant], opt_level=1)(*arguments)
        _compare(found, expected, variant)


# These are compiled with the pass, some without it too; those below are interpreted.
@pytest.mark.fuzz
@pytest.mark.parametrize("first", some(range(0, 60, 6), 3))
def test_seeded_graphs(first):
    others = ["off"] * (first < 24) + ["fast_compile"] * (first < 12)
    graphs = [build(Choices.seeded(seed), depth=3) for seed in range(first, first + 6)]
    check_all(graphs, ["on", *others])


def test_sizes_that_only_types_do_not_know():
    """The sizes of both operands are constants, those of the types of operands and result are not."""
    text = """
    func.func @main(%x: tensor<?x1xf64>) -> tensor<f64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %a = "graphc.slice"(%x, %c0, %c0, %c2, %c1, %c1, %c1) :
        (tensor<?x1xf64>, index, index, index, index, index, index) -> tensor<?x1xf64>
      %j = "graphc.join"(%a, %a) {axis = 0 : i64} : (tensor<?x1xf64>, tensor<?x1xf64>) -> tensor<?x1xf64>
      %s = "graphc.reduce_sum"(%j) {axes = array<i64: 0, 1>} : (tensor<?x1xf64>) -> tensor<f64>
      return %s : tensor<f64>
    }"""
    for variant in ("on", "off"):
        assert compile_text(text, VARIANTS[variant])(np.array([[1.0], [2.0], [4.0]])) == [6.0]


def test_windows_of_what_one_loop_fills():
    """LLVM 22.1.0 aborted where a vector is read of a buffer on the stack that others fill out of order."""
    data, row = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    x, y = pt.matrix("x", shape=(3, 4)), pt.vector("y", shape=(4,))
    for first, last in ((2, 5), (1, 4), (2, 4)):
        joined = pt.concatenate([x + y, x * 2.0])[first:last]
        expected = np.concatenate([data + row, data * 2])[first:last]
        np.testing.assert_array_equal(graphc.function([x, y], joined)(data, row), expected)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", some(range(100, 540, 20), 3))
def test_seeded_meaning(first):
    for seed in range(first, first + 20):
        check_meaning(build(Choices.seeded(seed)), "1" if seed % 2 else "2", before=seed % 5 == 0)


@st.composite
def graphs(draw):
    return build(Choices(lambda low, high: draw(st.integers(low, high))))


@pytest.mark.fuzz
@settings(suppress_health_check=SLOW, deadline=None, max_examples=examples(10))
@given(variant=st.sampled_from(list(VARIANTS)), graph=graphs())
def test_random_graphs(variant, graph):
    check_all([graph], [variant])


@pytest.mark.fuzz
@settings(suppress_health_check=SLOW, deadline=None)
@given(graph=graphs())
def test_random_meaning(graph):
    check_meaning(graph, "1")
