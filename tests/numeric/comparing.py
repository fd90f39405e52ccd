# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the results of compiled modes with those of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from graphs import Graph

import graphc
from graphc.graph.traversal import toposort

# Relative to the largest intermediate value, as sums cancel.
TOLERANCES = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10}


def compile_checked(inputs: Sequence[Any], outputs: Sequence[Any], mode: str) -> Any:
    """A function of that mode, all of which is machine code.

    Raises:
        AssertionError: some of it runs in Python, which would compare the reference with itself.
    """
    f = graphc.function(list(inputs), list(outputs), mode=mode, on_unused_input="ignore")
    report = f.report
    fallen = [str(fallback) for fallback in report.fallbacks]
    assert report.mode == mode, f"compiled in mode {report.mode}, not {mode}"
    assert not fallen and report.native_nodes == report.nodes, f"not native: {fallen}\n{report}"
    return f


def _tolerance(graph: Graph) -> float:
    """The tolerance of the least precise dtype that the graph computes with."""
    dtypes = {v.type.dtype for node in toposort(graph.outputs) for v in (*node.inputs, *node.outputs)}
    return max((TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES), default=0.0)


def merged(graphs: Sequence[Graph]) -> Graph:
    """Several graphs as one, which compiles in less time."""
    return Graph(
        inputs=[x for graph in graphs for x in graph.inputs],
        values=[value for graph in graphs for value in graph.values],
        outputs=[y for graph in graphs for y in graph.outputs],
        scale=max(graph.scale for graph in graphs),
        steps=[step for graph in graphs for step in graph.steps],
    )


def check_all(graphs: Sequence[Graph], mode: str, threads: Sequence[int] = (1,)) -> None:
    """What `check` does for several graphs in one function, with each of the numbers of threads.

    Raises:
        AssertionError: showing the first graph that fails on its own, or saying that they only fail together.
    """
    try:
        function, expected = _both(merged(graphs), mode)
        for count in threads:
            with graphc.threads(count):
                _check_parts(graphs, function, expected, f"{mode}, {count} threads")
    except Exception as error:
        for graph in graphs:
            try:
                check(graph, mode)
            except Exception as own:
                raise AssertionError(f"{own}\n{graph}") from own
        raise AssertionError(f"fails only together with others: {error}\n{list(graphs)}") from error


def _both(graph: Graph, mode: str) -> tuple[Any, list[Any]]:
    """The compiled function and the results of the reference mode."""
    reference = graphc.function(graph.inputs, graph.outputs, mode="reference", on_unused_input="ignore")
    return compile_checked(graph.inputs, graph.outputs, mode), reference(*(x.copy() for x in graph.values))


def _check_parts(graphs: Sequence[Graph], function: Any, expected: list[Any], what: str) -> None:
    values = [value for graph in graphs for value in graph.values]
    before = [value.copy() for value in values]
    for _ in range(2):
        results = function(*values)
        for value, old in zip(values, before, strict=True):
            np.testing.assert_array_equal(value, old, err_msg=f"an input was changed in mode {what}")
        compare_parts(graphs, results, expected, what)


def compare_parts(graphs: Sequence[Graph], results: list[Any], expected: list[Any], what: str) -> None:
    """Compare the results of `merged` graphs, each with the tolerance of its own graph.

    Raises:
        AssertionError: a result has another dtype, shape or value.
    """
    pairs = zip(results, expected, strict=True)
    for graph in graphs:
        for y, (got, want) in zip(graph.outputs, pairs, strict=False):
            _compare(got, np.asarray(want), _tolerance(graph), graph, f"{y} in mode {what}")
    assert next(pairs, None) is None


def check(graph: Graph, mode: str) -> None:
    """Run a graph in a compiled mode and in the reference mode, twice, and compare.

    Raises:
        AssertionError: a result has another dtype, shape or value; or inputs have changed.
    """
    reference = graphc.function(graph.inputs, graph.outputs, mode="reference", on_unused_input="ignore")
    compiled = compile_checked(graph.inputs, graph.outputs, mode)
    before = [value.copy() for value in graph.values]
    expected = reference(*before)
    tolerance = _tolerance(graph)
    for _ in range(2):
        results = compiled(*graph.values)
        for x, value, old in zip(graph.inputs, graph.values, before, strict=True):
            np.testing.assert_array_equal(value, old, err_msg=f"input {x} was changed")
        for i, (got, want) in enumerate(zip(results, expected, strict=True)):
            _compare(got, want, tolerance, graph, f"output {i} ({graph.outputs[i]}) in mode {mode}")


def _compare(got: Any, want: np.ndarray, tolerance: float, graph: Graph, what: str) -> None:
    assert isinstance(got, np.ndarray), f"{what} is a {type(got).__name__}, not an array"
    assert got.dtype == want.dtype, f"{what} has dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what} has shape {got.shape}, expected {want.shape}"
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    # A value beyond the range of the dtype may overflow in one order of summation and not in another.
    limit = graph.scale if np.isfinite(graph.scale) else 1.0
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance * limit, equal_nan=True, err_msg=what
    )
