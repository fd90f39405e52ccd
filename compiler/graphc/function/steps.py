# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of a schedule: native segments and nodes that run in Python, and how they make thunks.

Steps know nodes by their positions, since a pickled graph has nodes of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from graphc.function.iterations import CountedBody
from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import sides
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.thunks import Cells, ForeignThunk, LoopThunk, UserThunk, user_thunk
from graphc_runtime.record import record
from graphc_runtime.thunk import FunctionThunk, Register, Thunk, value_thunk

if TYPE_CHECKING:
    from graphc.graph.contract import Executor


class Observer(Protocol):
    """Sees thunks at work, for traces and guards."""

    def observe(self, step: Segment | NodeStep, thunk: Thunk, cells: Cells) -> Thunk:
        """The thunk to run instead of ``thunk``."""
        ...


@record()
class Segment:
    """Nodes that run as one native executable.

    Attributes:
        fgraph: the graph that they belong to.
        positions: places of the nodes in ``fgraph.nodes``.
        compiled: the code.
        observer: sees the thunk at work; None for nobody.
    """

    fgraph: FunctionGraph
    positions: list[int]
    compiled: Executor
    observer: Observer | None = None

    @property
    def nodes(self) -> list[Apply]:
        """The nodes, in order."""
        return [self.fgraph.nodes[i] for i in self.positions]

    @property
    def name(self) -> str:
        """The op if there is one, else the number of ops."""
        if len(self.positions) == 1:
            return str(self.nodes[0].op)
        return f"native segment of {len(self.positions)} ops"

    def make(self, *given: Sequence[Register]) -> Thunk:
        """The thunk over `Cells` that are given one by one; see `Op.make_thunk`."""
        cells = Cells(*given)
        _, flags, inputs, outputs = cells
        function, single = self.compiled.call()
        if single:
            thunk: Thunk = value_thunk(function, inputs, outputs[0], flags[0])
        else:
            thunk = FunctionThunk(function, inputs, outputs, flags)
        return thunk if self.observer is None else self.observer.observe(self, thunk, cells)

    def observed(self, observer: Observer) -> Segment:
        """The same code, with an observer."""
        return replace(self, observer=observer)


@record()
class NodeStep:
    """A node that runs in Python.

    Attributes:
        fgraph: the graph that it belongs to.
        position: its place in ``fgraph.nodes``.
        body: what runs the inner graph of a loop; None for other ops.
        observer: sees the thunk at work; None for nobody.
        output: of a conditional, the output that the step is for; None for all.
    """

    fgraph: FunctionGraph
    position: int
    body: Any = None
    observer: Observer | None = None
    output: int | None = None

    @property
    def node(self) -> Apply:
        """The node."""
        return self.fgraph.nodes[self.position]

    @property
    def nodes(self) -> list[Apply]:
        """The node, as a list."""
        return [self.node]

    @property
    def inputs(self) -> list[Variable]:
        """Variables that the thunk reads."""
        node = self.node
        return node.inputs if self.output is None else [node.inputs[0], *sides(node, self.output)]

    @property
    def outputs(self) -> list[Variable]:
        """Variables that the thunk computes."""
        return self.node.outputs if self.output is None else [self.node.outputs[self.output]]

    @property
    def name(self) -> str:
        """The op."""
        return str(self.node.op)

    def make(self, *given: Sequence[Register]) -> Thunk:
        """The thunk over `Cells` that are given one by one; see `Op.make_thunk`."""
        node, cells = self.node, Cells(*given)
        if self.body is not None and type(node.op).make_thunk is Op.make_thunk:
            body = self.body if self.observer is None else CountedBody(self.body, self.name)
            thunk: Thunk = LoopThunk(node, cells, body)
        else:
            is_ours = type(node.op).make_thunk.__module__.startswith("graphc.")
            thunk = node.op.make_thunk(node, *cells) if is_ours else user_thunk(node, cells)
            if isinstance(thunk, ForeignThunk | UserThunk):
                thunk.contract.overwrites = bool(self.fgraph.destruction.destroyers)
        return thunk if self.observer is None else self.observer.observe(self, thunk, cells)

    def observed(self, observer: Observer) -> NodeStep:
        """The same step, with an observer, which also sees the body."""
        body = None if self.body is None else self.body.observed(observer)
        return replace(self, observer=observer, body=body)
