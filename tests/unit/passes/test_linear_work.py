# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes take linear time: what they do is counted for a graph and for one twice as long."""

from __future__ import annotations

import graphc.tensor as pt
from graphc.backends.cpu.pipeline import pipeline
from graphc.backends.stages import Request
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.library.places import Interval
from graphc.passes.buffer._workspace import Buffer, Size, Workspace
from graphc.passes.graph import _joins
from graphc.passes.graph._clusters import UnitGraph
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir

from ._semantics import context


def lowered(inputs, outputs, last: str) -> ir.Module:
    """The module of a graph after the pass `last` of fast_run."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(emit_module(FunctionGraph(inputs, outputs)).text)
        entries = pipeline("fast_run", Request(has_scan=False))
        run_pipeline(module, entries[: [entry[0] for entry in entries].index(last) + 1])
        return module


def elements(count: int):
    """Elements are set one by one, each to a function of the next; all read one factor."""
    x, y = pt.dvector("x"), pt.dscalar("y")
    h = x
    for i in range(count):
        h = pt.set_subtensor(h[i], pt.sin(h[i + 1]) * y)
    return [x, y], [h]


def test_merging_readers_of_one_value(monkeypatch):
    visits = []
    original = UnitGraph.__init__

    def note(self, *args, **keywords):
        original(self, *args, **keywords)
        visits.append(self)

    monkeypatch.setattr(UnitGraph, "__init__", note)

    def work(count: int) -> int:
        visits.clear()
        lowered(*elements(count), "graphc-fusion")
        return sum(units.visits for units in visits)

    assert work(100) < 2.5 * work(50)


def test_chains_of_updates_are_arranged_when_they_may_fill_the_whole(monkeypatch):
    calls, depth = [], [0]
    original = _joins.arrange

    def arrange(*given):
        """Counts the calls that are not of its own."""
        calls.extend([given] if not depth[0] else [])
        depth[0] += 1
        try:
            return original(*given)
        finally:
            depth[0] -= 1

    monkeypatch.setattr(_joins, "arrange", arrange)
    lowered(*elements(50), "graphc-join-buffer-elimination")
    assert not calls
    x = pt.tensor("x", dtype="float64", shape=(50,))
    h = x
    for i in range(50):
        h = pt.set_subtensor(h[i], pt.sin(x[i]))
    module = lowered([x], [h], "graphc-join-buffer-elimination")
    assert len(calls) == 1
    assert "graphc.update_slice" not in str(module) and "graphc.write_join" in str(module)


class Factors(tuple):
    """A product of sizes that counts how often it is looked at."""

    looks = 0

    def __hash__(self):
        Factors.looks += 1
        return super().__hash__()

    def __eq__(self, other):
        Factors.looks += 1
        return super().__eq__(other)


def test_tables_of_buffers_of_many_sizes():
    def work(count: int) -> int:
        Factors.looks = 0
        buffers = [Buffer(None, Interval(i, i + 1), Size(8 + i, Factors((i // 2,)))) for i in range(count)]
        workspace = Workspace(0, 0, buffers)
        assert [workspace.key(buffer) for buffer in buffers] == [i // 2 for i in range(count)]
        assert [workspace.largest(key) for key in range(count // 2)] == list(range(9, 8 + count, 2))
        return Factors.looks

    assert work(400) < 2.5 * work(200)
