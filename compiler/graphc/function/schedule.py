# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph as a schedule of native segments and Python thunks over shared registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphc.function.reference import perform_node
from graphc.function.report import CompileReport
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.tensor.type import TensorType
from graphc.tensor.variable import TensorConstant

# Constants with more elements are passed as arguments, so that code does not depend on data.
LITERAL_SIZE = 16


class Executor(Protocol):
    """Anything that runs a graph: one value for each input to one for each output."""

    def run(self, values: Sequence[Any]) -> list[Any]: ...


Compile = Callable[[FunctionGraph], Executor]


def why_not_native(node: Apply) -> str | None:
    """Why a node cannot be compiled, or None when it can."""
    obstacle = getattr(node.op, "body_obstacle", None)
    if obstacle is not None:
        return str(obstacle)
    if not hasattr(node.op, "emit"):
        return "the op has no emit method"
    for v in (*node.inputs, *node.outputs):
        if not isinstance(v.type, TensorType):
            return f"{v.type} is not a tensor type"
    return None


def is_hidden_argument(v: Variable) -> bool:
    """Whether a constant is passed to native code as an argument instead of being part of the code."""
    return isinstance(v, TensorConstant) and v.data.size > LITERAL_SIZE


def partition(fgraph: FunctionGraph, native: Callable[[Apply], bool]) -> list[tuple[bool, list[Apply]]]:
    """Split the nodes into groups that run one after the other, each wholly native or wholly Python.

    A node's stage is the number of changes of kind on the longest way to it. Nodes of one stage are of one
    kind and need only earlier stages or each other, so that a stage is as large as it can be. One that
    overwrites memory comes behind those that read it.
    """
    stage: dict[Apply, int] = {}
    groups: dict[int, list[Apply]] = {}
    for node in fgraph.nodes:
        kind = native(node)
        # Native groups have even numbers, so that a root of the graph starts in the first group of its kind.
        number = 0 if kind else 1
        earlier = [v.owner for v in node.inputs] + fgraph.destruction.before.get(node, [])
        for other in earlier:
            if other in stage:
                before = stage[other]
                number = max(number, before + (before % 2 == 0) * (not kind) + (before % 2 == 1) * kind)
        stage[node] = number
        groups.setdefault(number, []).append(node)
    return [(number % 2 == 0, groups[number]) for number in sorted(groups)]


@dataclass
class Segment:
    """A native executable and the registers it reads and writes."""

    executable: Executor
    reads: list[int]
    writes: list[int]

    def __call__(self, registers: list[Any]) -> None:
        results = self.executable.run([registers[i] for i in self.reads])
        for i, value in zip(self.writes, results, strict=True):
            registers[i] = value


@dataclass
class Thunk:
    """A node that runs in Python, and the registers it reads and writes.

    Attributes:
        body: what runs the inner graph of a loop; None for other ops.
    """

    fgraph: FunctionGraph
    position: int
    reads: list[int]
    writes: list[int]
    body: Executor | None = None

    def __call__(self, registers: list[Any]) -> None:
        node = self.fgraph.nodes[self.position]
        results = perform_node(node, [registers[i] for i in self.reads], self.body)
        for i, value in zip(self.writes, results, strict=True):
            registers[i] = value


class Schedule:
    """Runs the parts of a graph in order.

    Args:
        fgraph: the graph.
        compile_segment: compiles a graph of native nodes.
        report: gains the ops that run in Python.
    """

    def __init__(self, fgraph: FunctionGraph, compile_segment: Compile, report: CompileReport) -> None:
        self.fgraph = fgraph
        self._register = {v: i for i, v in enumerate(fgraph.variables)}
        self._initial: list[Any] = [v.data if isinstance(v, Constant) else None for v in fgraph.variables]
        self._reads = [self._register[v] for v in fgraph.inputs]
        self._writes = [self._register[v] for v in fgraph.outputs]
        position = {node: i for i, node in enumerate(fgraph.nodes)}
        self.steps: list[Segment | Thunk] = []
        for native, nodes in partition(fgraph, lambda node: why_not_native(node) is None):
            if native:
                self.steps.append(self._segment(nodes, compile_segment))
                continue
            for node in nodes:
                report.add_fallback(node, why_not_native(node) or "")
                inner = getattr(node.op, "compiled_graph", None)
                body = None if inner is None else Schedule(inner, compile_segment, report)
                reads, writes = self._indices(node.inputs), self._indices(node.outputs)
                self.steps.append(Thunk(fgraph, position[node], reads, writes, body))

    def _indices(self, variables: Sequence[Variable]) -> list[int]:
        return [self._register[v] for v in variables]

    def _segment(self, nodes: list[Apply], compile_segment: Compile) -> Segment:
        members = set(nodes)
        reads = dict.fromkeys(
            v
            for node in nodes
            for v in node.inputs
            if v.owner not in members and (not isinstance(v, Constant) or is_hidden_argument(v))
        )
        writes = [
            v
            for node in nodes
            for v in node.outputs
            if any(client not in members for client, _ in self.fgraph.clients[v])
        ]
        executable = compile_segment(FunctionGraph(list(reads), writes))
        return Segment(executable, self._indices(list(reads)), self._indices(writes))

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output."""
        registers = self._initial.copy()
        for i, value in zip(self._reads, values, strict=True):
            registers[i] = value
        for step in self.steps:
            step(registers)
        return [registers[i] for i in self._writes]
