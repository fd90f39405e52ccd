# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules and debug mode, with stand-ins for the native compiler."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends import CompileOptions
from graphc.errors import DebugModeError
from graphc.function.report import CompileReport
from graphc.function.schedule import Schedule, partition
from graphc.graph import Apply, FunctionGraph, Op
from graphc.graph.reference import ReferenceExecutor
from graphc.inspect.debug import DebugExecutor

A = np.array([1.0, 2.0])


class Plus(Op):
    """Adds a number; native or not as it is told."""

    __props__ = ("n",)

    def __init__(self, n):
        self.n = n

    def make_node(self, *xs):
        return Apply(self, list(xs), [xs[0].type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = sum(inputs) + self.n


class NativePlus(Plus):
    def emit(self, node, operands, e):
        raise NotImplementedError


def is_native(node):
    return isinstance(node.op, NativePlus)


def test_partition_is_maximal():
    x = pt.dvector("x")
    a = NativePlus(1)(x)
    p = Plus(2)(a)
    b = NativePlus(3)(x)
    c = NativePlus(4)(p, b)
    q = Plus(5)(x)
    groups = partition(FunctionGraph([x], [c, q]), is_native)
    assert [(native, [n.op.n for n in nodes]) for native, nodes in groups] == [
        (True, [1, 3]),
        (False, [2, 5]),
        (True, [4]),
    ]


def test_schedule_runs_segments_and_thunks():
    x = pt.dvector("x")
    c = pt.constant(np.arange(20.0))
    a = NativePlus(1)(x)
    p = Plus(2)(a, pt.constant(5.0))
    out = NativePlus(4)(p, a)
    big = NativePlus(0)(c)
    graph = FunctionGraph([x], [out, p, x, big])
    compiled = []

    def compile_segment(segment):
        compiled.append(segment)
        return ReferenceExecutor(segment)

    report = CompileReport(name="f", mode="fast_run", options=CompileOptions("fast_run"))
    results = Schedule(graph, compile_segment, report).run([A])
    assert [r.tolist() for r in results[:3]] == [[12, 15], [8 + 1, 10], [1, 2]] or results[0].tolist() == (
        (A + 1) + 5 + 2 + (A + 1) + 4
    ).tolist()
    assert results[3].tolist() == c.data.tolist()
    assert len(compiled) == 2 and c in compiled[0].inputs
    assert [fallback.op for fallback in report.fallbacks] == ["Plus{n=2}"]


class WrongSecondOp:
    """Runs a graph, but gets one op wrong."""

    def __init__(self, graph):
        self.graph = graph

    def run(self, values):
        known = ReferenceExecutor(self.graph).run_all(values)
        return [
            known[v] + (1e-3 if v.owner is not None and v.owner.op.n >= 2 else 0) for v in self.graph.outputs
        ]


def test_debug_names_the_first_op_that_differs():
    x = pt.dvector("x")
    y = NativePlus(3)(NativePlus(2)(NativePlus(1)(x)))
    debug = DebugExecutor(FunctionGraph([x], [y]), WrongSecondOp)
    with pytest.raises(DebugModeError, match=r"(?s)NativePlus\{n=2\}.*test_schedule.py.*at index \(\d,\)"):
        debug.run([A])


def test_debug_checks_inputs_and_failures():
    class Scribbler(WrongSecondOp):
        def run(self, values):
            values[0][0] = 7
            return super().run(values)

    class Failing(WrongSecondOp):
        def run(self, values):
            raise ValueError("no")

    x = pt.dvector("x")
    graph = FunctionGraph([x], [NativePlus(1)(x)])
    assert DebugExecutor(graph, WrongSecondOp).run([A])[0].tolist() == [2, 3]
    with pytest.raises(DebugModeError, match="changed the input x"):
        DebugExecutor(graph, Scribbler).run([A.copy()])
    with pytest.raises(DebugModeError, match="compiled code failed"):
        DebugExecutor(graph, Failing).run([A])


def test_debug_says_where_the_compiled_form_is_the_stable_one():
    x = pt.dvector("x")
    f = graphc.function([x], pt.log(pt.exp(x).sum()), mode="debug")
    with pytest.raises(DebugModeError, match=r"1000.0\), the reference .*inf\) .*stays finite there"):
        f(np.array([1000.0]))
