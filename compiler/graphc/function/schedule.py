# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph as a schedule of thunks: native segments and nodes in Python, over shared registers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from graphc.emit.emitter import is_hidden_argument, why_not_native
from graphc.function.call_form import KernelForm
from graphc.function.compiled import Compiled
from graphc.function.partition import LazyDemands, lazy_groups, segment
from graphc.function.partition import partition as partition
from graphc.function.python_loops import without_repeats
from graphc.function.report import CompileReport
from graphc.function.steps import NodeStep, Observer, Segment
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.contract import Executor
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc_runtime.linker import Frame, Layout, Step, make_linker
from graphc_runtime.thunk import Thunk

Compile = Callable[[FunctionGraph], Executor]


class Schedule(Executor):
    """Runs the parts of a graph: in order, or lazily where a thunk is lazy.

    Args:
        fgraph: the graph.
        compile_segment: compiles a graph of native nodes.
        report: gains the ops that run in Python.
        grain: how much runs as one thunk: "segment", native segments as large as they can be; "op", each
            node for itself; "python", all in Python.

    Attributes:
        steps: the parts, in an order in which they can run.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        compile_segment: Compile,
        report: CompileReport,
        *,
        grain: str = "segment",
    ) -> None:
        self.fgraph = fgraph
        builder = _Builder(fgraph, compile_segment, report, grain)
        self.steps: list[Segment | NodeStep] = builder.steps
        self._linker = make_linker(builder.layout, builder.frame, builder.thunks)
        self._has_python = any(isinstance(step, NodeStep) for step in self.steps)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output."""
        return self._run_quietly(values) if self._has_python else self._linker(values)

    def segments(self) -> Iterator[Executor]:
        """The native segments, also those in bodies of loops."""
        for step in self.steps:
            if isinstance(step, Segment):
                yield from step.compiled.segments()
            elif step.body is not None:
                yield from step.body.segments()

    # Reference implementations return NaN and infinities as compiled code does, without warnings. The
    # decorator takes half the time of a with statement.
    @np.errstate(all="ignore")
    def _run_quietly(self, values: Sequence[object]) -> list[int | np.ndarray] | list[np.ndarray]:
        return self._linker(values)

    def observed(self, observer: Observer) -> Schedule:
        """A schedule of the same parts, at whose thunks an observer looks."""
        other = copy.copy(self)
        other.steps = [step.observed(observer) for step in self.steps]
        old = self._linker.layout
        steps = [replace(step, make=part.make) for part, step in zip(other.steps, old.steps, strict=True)]
        other._linker = make_linker(Layout(steps, old.inputs, old.outputs, old.constants))
        return other


class Compiler(Protocol):
    """Compiles graphs that are native, and makes schedules of others."""

    report: CompileReport

    def __call__(self, fgraph: FunctionGraph, form: KernelForm | None = None) -> Executor: ...

    def compiled(self, fgraph: FunctionGraph, form: KernelForm | None = None) -> Compiled: ...


def in_parts(compiler: Compiler, fgraph: FunctionGraph, form: KernelForm | None) -> Executor:
    """A program for a graph of which not all is native: as it is written, but for its loops."""
    rewritten = without_repeats(fgraph)
    if rewritten is not fgraph:
        # Python operations may have left loops, which are native then.
        return compiler(rewritten, form)
    return Schedule(fgraph, compiler.compiled, compiler.report)


class _Builder:
    """Makes the steps of a graph and their first thunks."""

    def __init__(
        self, fgraph: FunctionGraph, compile_segment: Compile, report: CompileReport, grain: str
    ) -> None:
        self._fgraph, self._compile, self._report, self._grain = fgraph, compile_segment, report, grain
        self._number = {v: i for i, v in enumerate(fgraph.variables)}
        self._position = {node: i for i, node in enumerate(fgraph.nodes)}
        self._python: dict[Apply, list[tuple[NodeStep, Thunk]]] = {}
        self._why = {node: why_not_native(node) for node in fgraph.nodes}
        constants = {self._number[v]: v.data for v in fgraph.variables if isinstance(v, Constant)}
        inputs, outputs = self._numbers(fgraph.inputs), self._numbers(fgraph.outputs)
        self.frame = Frame(inputs, constants)
        # Which thunks are lazy shows when they exist, and decides what goes into one segment.
        for node in fgraph.nodes:
            if not self._native(node):
                self._make_python(node)
        lazy = {node: "" for node, made in self._python.items() if any(thunk.lazy for _, thunk in made)}
        if grain == "op":
            # The branches of a conditional are compiled apart from it.
            lazy |= dict.fromkeys(filter(is_conditional, fgraph.nodes), "each operation runs for itself")
        groups, demands = lazy_groups(fgraph, self._native, lazy)
        self._lazy = lazy
        self.steps: list[Segment | NodeStep] = []
        self.thunks: list[Thunk] = []
        self._steps: list[Step] = []
        for native, nodes in self._split(groups):
            self._add(native, nodes)
        self._add_order(demands)
        self.layout = Layout(self._steps, inputs, outputs, constants)

    def _native(self, node: Apply) -> bool:
        return self._grain != "python" and self._why[node] is None

    def _split(self, groups: list[tuple[bool, list[Apply]]]) -> list[tuple[bool, list[Apply]]]:
        """The groups as thunks are to be made of them."""
        return [
            (native, part)
            for native, nodes in groups
            for part in ([nodes] if native and self._grain == "segment" else [[node] for node in nodes])
        ]

    def _numbers(self, variables: Sequence[Variable]) -> tuple[int, ...]:
        return tuple(self._number[v] for v in variables)

    def _make_python(self, node: Apply) -> None:
        inner = getattr(node.op, "compiled_graph", None)
        body = None
        if inner is not None:
            body = Schedule(inner, self._compile, self._report, grain=self._grain)
        # Each output of a conditional has a thunk, as it may be needed where others are not.
        outputs = range(len(node.outputs)) if is_conditional(node) else [None]
        steps = [NodeStep(self._fgraph, self._position[node], body, output=k) for k in outputs]
        self._python[node] = [
            (step, self.frame.link(step.make, self._numbers(step.inputs), self._numbers(step.outputs)))
            for step in steps
        ]

    def _add(self, native: bool, nodes: list[Apply]) -> None:
        if native:
            self._add_segment(nodes)
            return
        (node,) = nodes
        if node not in self._python:
            self._make_python(node)
        if self._grain != "python":
            self._report.add_fallback(node, self._why[node] or self._lazy[node])
        for step, thunk in self._python[node]:
            self._append(step, thunk, self._numbers(step.inputs), self._numbers(step.outputs))

    def _add_segment(self, nodes: list[Apply]) -> None:
        graph = segment(self._fgraph, nodes, is_hidden_argument)
        positions = [self._position[node] for node in nodes]
        step = Segment(self._fgraph, positions, self._compile(graph))
        read, written = self._numbers(graph.inputs), self._numbers(graph.outputs)
        self._append(step, self.frame.link(step.make, read, written), read, written)

    def _append(
        self, step: Segment | NodeStep, thunk: Thunk, reads: tuple[int, ...], writes: tuple[int, ...]
    ) -> None:
        self.steps.append(step)
        self.thunks.append(thunk)
        made = Step(step.make, reads, writes, step.name)
        if thunk.lazy and len(writes) > 1 and isinstance(step, NodeStep):
            pattern = step.node.op.connection_pattern(step.node)
            made.feeds = tuple(
                tuple(i for i in range(len(reads)) if pattern[i][k]) for k in range(len(writes))
            )
        self._steps.append(made)

    def _add_order(self, demands: LazyDemands | None) -> None:
        """Says which steps overwrite memory that others read."""
        before = self._fgraph.destruction.before
        if not before:
            return
        steps_of: dict[Apply, list[int]] = {}
        for i, part in enumerate(self.steps):
            for node in part.nodes:
                steps_of.setdefault(node, []).append(i)
        for node, readers in before.items():
            (number,) = steps_of[node]
            step = self._steps[number]
            step.overwrites = tuple(dict.fromkeys(i for each in node.op.destroy_map.values() for i in each))
            step.readers = tuple(dict.fromkeys(k for reader in readers for k in steps_of[reader]))
            if demands is not None:
                # Readers that are needed whenever the node is can run first; the others may never run.
                same = (demands.always, demands.of_node(node))
                needed = (r for r in readers if demands.of_node(r) in same and not is_conditional(r))
                step.after = tuple(dict.fromkeys(k for reader in needed for k in steps_of[reader]))
