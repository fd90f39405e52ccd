# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work of passes is proportional to the graph. It is counted, not timed: calls that a pass of ours makes,
and operations that each pass leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu.pipeline import pipeline
from graphc.backends.stages import request_of
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.walk import walk
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context

Graph = tuple[list[Any], list[Any]]
# Twice the graph may take that many times the work.
MOST = 2.4


def updates(size: int) -> Graph:
    y = x = pt.vector("x")
    for i in range(size):
        y = pt.set_subtensor(y[i], float(i))
    return [x], [y]


def increments_of_a_result(size: int) -> Graph:
    x = pt.vector("x")
    y = pt.exp(x)
    for i in range(size):
        y = pt.inc_subtensor(y[i : i + 2], x[i])
    return [x], [y * 2]


def join(size: int) -> Graph:
    """Every part reads the same literals and the same number."""
    vectors = [pt.vector(f"x{i}") for i in range(size)]
    scale = pt.exp(vectors[0].sum())
    return vectors, [pt.concatenate([2 * v + scale for v in vectors])]


def joins_of_joins(size: int) -> Graph:
    y = x = pt.vector("x")
    for _ in range(size):
        y = pt.concatenate([pt.exp(y[:5]), y[5:] * 2])
    return [x], [y]


def inputs(size: int) -> Graph:
    vectors = [pt.vector(f"x{i}") for i in range(size)]
    return vectors, [sum(vectors[1:], vectors[0])]


def conditionals(size: int) -> Graph:
    y = x = pt.vector("x")
    for i in range(size):
        y = graphc.ifelse(x[0] > i, pt.exp(y), y + 1.0)
    return [x], [y]


def conditionals_in_conditionals(size: int) -> Graph:
    x = pt.vector("x")
    tests, y = [x.sum()], pt.exp(x)
    for i in range(size - 1):
        tests.append(pt.cos(tests[-1]) + i)
    for i, test in reversed(list(enumerate(tests))):
        y = graphc.ifelse(test > i, pt.sin(x + i), y)
    return [x], [y]


def results(size: int) -> Graph:
    x = pt.vector("x")
    return [x], [pt.exp(x * float(i)) for i in range(size)]


def depth(size: int) -> Graph:
    y = x = pt.vector("x")
    for _ in range(size):
        y = pt.tanh(y) * x.sum() + y
    return [x], [y]


def steps(size: int) -> Graph:
    """In fast_compile each computes in the memory of the one before."""
    y = x = pt.vector("x")
    for _ in range(size):
        y = pt.tanh(y)
    return [x], [y]


class Counts:
    """What a pipeline does: a pass's number and name, with its calls or the operations after it."""

    def __init__(self) -> None:
        self.calls: dict[tuple[int, str], int] = {}
        self.operations: dict[tuple[int, str], int] = {}
        self._now = 0

    def before(self, name: str, _: Any) -> None:
        self._now = 0
        if name.startswith("graphc-"):
            sys.setprofile(self._count)

    def after(self, name: str, module: Any) -> None:
        sys.setprofile(None)
        key = len(self.operations), name
        self.operations[key] = len(walk(module.operation))
        self.calls[key] = self._now

    def failed(self, name: str, module: Any) -> None:
        sys.setprofile(None)

    def _count(self, frame: Any, event: str, argument: Any) -> None:
        self._now += event in ("call", "c_call")


def counted(make: Callable[[int], Graph], size: int, mode: str) -> Counts:
    text = emit_module(FunctionGraph(*make(size))).text
    counts = Counts()
    entries = pipeline(mode, request_of(text))
    # What comes then begins at a number of loops: below it, a kernel is left in one piece.
    end = [entry[0] for entry in entries].index("graphc-outline-loops")
    with context(), ir.Location.unknown():
        run_pipeline(ir.Module.parse(text), entries[:end], instrument=counts)
    return counts


CASES = [
    (updates, 120),  # of which join-buffer-elimination looks at the 64 before each
    (increments_of_a_result, 25),
    (join, 60),
    (joins_of_joins, 20),
    (inputs, 160),
    (conditionals, 20),
    (conditionals_in_conditionals, 48),
    (results, 40),
    (depth, 80),
    (steps, 80),
]


@pytest.mark.parametrize(("make", "size"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_twice_the_graph_is_twice_the_work(make, size):
    mode = "fast_compile" if make is steps else "fast_run"
    counted(make, 4, mode)  # what is computed once for all modules
    small, large = counted(make, size, mode), counted(make, 2 * size, mode)
    assert list(small.operations) == list(large.operations)
    for kind in ("calls", "operations"):
        before, after = getattr(small, kind), getattr(large, kind)
        worse = {
            key: (before[key], after[key])
            for key in before
            if after[key] > 1000 and after[key] > MOST * before[key]
        }
        assert not worse, f"{kind} that grow more than proportionally: {worse}"


@pytest.mark.parametrize("make", [updates, increments_of_a_result])
def test_updates_hand_on_no_tensor(make):
    """Else bufferization compares each with all others, and looks for the writes before: time n cubed."""
    text = emit_module(FunctionGraph(*make(5))).text
    entries = pipeline("fast_run", request_of(text))
    end = [entry[0] for entry in entries].index("graphc-convert-to-linalg")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, entries[: end + 1])
        loops = [op for op in walk(module.operation) if op.name == "scf.for"]
        assert loops and not any(len(op.results) for op in loops)
        assert "tensor.insert" not in {op.name for op in walk(module.operation)}
