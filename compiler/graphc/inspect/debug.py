# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Debug mode: every call runs compiled code and the reference, and compares them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from graphc.errors import DebugModeError
from graphc.function.schedule import Schedule
from graphc.function.steps import NodeStep, Segment
from graphc.graph.basic import Apply, Variable, describe
from graphc.graph.contract import Contract, Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.reference import ReferenceExecutor
from graphc.graph.thunks import Cells, ForeignThunk, UserThunk
from graphc_runtime.symbols import kind_letter
from graphc_runtime.thunk import Thunk


class DebugExecutor(Executor):
    """Runs a graph twice and compares.

    Args:
        fgraph: the graph.
        compile_graph: makes the executor to be checked.
    """

    def __init__(self, fgraph: FunctionGraph, compile_graph: Callable[[FunctionGraph], Executor]) -> None:
        self.fgraph = fgraph
        self.reference = ReferenceExecutor(fgraph, strict=True)
        compiled = compile_graph(fgraph)
        self.compiled = compiled.observed(_Strict()) if isinstance(compiled, Schedule) else compiled
        self._compile = compile_graph
        self._tracing: tuple[list[Variable], Executor] | None = None

    @property
    def whole(self) -> Executor | None:
        return self.compiled.whole

    def segments(self) -> Iterator[Executor]:
        return self.compiled.segments()

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output.

        Raises:
            DebugModeError: the two disagree, only one of them fails, compiled code changed an input, or an op
                of a user has broken a promise about memory (`graphc.graph.contract`).
        """
        before = copy.deepcopy(list(values))
        expected, expected_error = _attempt(lambda: self.reference.run_all(copy.deepcopy(before)))
        results, error = _attempt(lambda: self.compiled.run(values))
        for found in (expected_error, error):
            if isinstance(found, DebugModeError):
                raise found
        self._compare_inputs(before, values)
        if expected_error is not None and error is not None:
            raise error
        if (expected_error is None) != (error is None):
            failed, fine = ("compiled code", "the reference") if error else ("the reference", "compiled code")
            raise DebugModeError(f"{failed} failed where {fine} did not: {error or expected_error}") from (
                error or expected_error
            )
        for v, value in zip(self.fgraph.outputs, results, strict=True):
            if not v.type.values_eq_approx(value, expected[v]):
                raise DebugModeError(self._explain(v, value, expected, before))
        return results

    def _compare_inputs(self, before: Sequence[object], after: Sequence[object]) -> None:
        for v, old, new in zip(self.fgraph.inputs, before, after, strict=True):
            if v in self.fgraph.destruction.destroyers:
                continue
            if not v.type.values_eq(old, new):
                raise DebugModeError(f"compiled code changed the input {v}{describe(v.location)}")

    def _explain(
        self, output: Variable, value: object, expected: dict[Variable, object], inputs: Sequence[Any]
    ) -> str:
        """Find the first op that differs, by compiling the graph with every variable as an output."""
        # Of branches only what was chosen has a value.
        inner = [v for node in self.fgraph.nodes for v in node.outputs if v in expected]
        if self._tracing is None or self._tracing[0] != inner:
            self._tracing = inner, self._compile(FunctionGraph(self.fgraph.inputs, inner))
        variables, executor = self._tracing
        for v, got in zip(variables, executor.run(copy.deepcopy(list(inputs))), strict=True):
            if not v.type.values_eq_approx(got, expected[v]):
                return f"the first op that differs is {_op_text(v.owner)}: {_difference(got, expected[v])}"
        return (
            f"the output {output} differs ({_difference(value, expected[output])}), but no op does when each "
            f"is computed for itself; the cause is their joint optimisation, at {_op_text(output.owner)}"
        )


class _Strict:
    """Has code of users told what its `Contract` would otherwise mend, in loops, too."""

    def observe(self, step: Segment | NodeStep, thunk: Thunk, cells: Cells) -> Thunk:
        if isinstance(thunk, ForeignThunk | UserThunk):
            thunk.contract = Contract(step.nodes[0], strict=True)
        return thunk


def _attempt(run: Any) -> tuple[Any, Exception | None]:
    try:
        return run(), None
    except Exception as error:
        return None, error


def _op_text(node: Apply | None) -> str:
    return "an input" if node is None else f"{node}{describe(node.location)}"


def _difference(got: object, expected: object) -> str:
    """Index at which two values differ most."""
    a, b = np.asarray(got), np.asarray(expected)
    if a.shape != b.shape or a.dtype != b.dtype or kind_letter(a.dtype) not in "biufc":
        return f"compiled gives {_kind(a)}, the reference {_kind(b)}"
    if not a.size:
        return "both are empty"
    with np.errstate(all="ignore"):
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        distance = np.abs(a.astype(wide) - b.astype(wide))
    where = np.unravel_index(
        np.argmax(np.where(np.isnan(distance) & ~((a != a) & (b != b)), np.inf, distance)), a.shape
    )
    index = f" at index {tuple(map(int, where))}" if a.ndim else ""
    stable = " (the form that is compiled stays finite there)" if np.isfinite(a[where]) else ""
    text = f"compiled gives {a[where]!r}, the reference {b[where]!r}{index}"
    return text if np.isfinite(b[where]) else text + stable


def _kind(a: np.ndarray) -> str:
    return f"{a.dtype} of shape {a.shape}" if kind_letter(a.dtype) in "biufc" else repr(a.item())
