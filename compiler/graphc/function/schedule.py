# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph as a schedule of thunks: native segments and nodes in Python, over shared registers.

Loops with operations that run in Python get here what the dialect's passes do for all others.

Such a loop never becomes a ``graphc.scan``, so it is rewritten in the graph: states and outputs that nobody
needs go, what all iterations have in common is computed once, before the first one, and of a trace only the
most recent rows are kept if no others are read. A loop whose Python operations have left it is native.

What is computed once must be needed in every iteration, and is computed only if there is an iteration: a
`Prologue` has the number of steps. Rows are left out only at the far end of a trace: what cuts rows off there
by constants, and all that reads the other end, finds the same rows in what is kept, and where the loop is too
short to leave any out, the whole trace. Nothing is rewritten where operations overwrite their inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np

from graphc.emit.emitter import is_hidden_argument, why_not_native
from graphc.function.call_form import KernelForm
from graphc.function.compiled import Compiled
from graphc.function.partition import LazyDemands, lazy_groups, segment
from graphc.function.partition import partition as partition
from graphc.function.report import CompileReport
from graphc.function.steps import NodeStep, Observer, Segment
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.contract import Executor
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.reference import ReferenceExecutor
from graphc.graph.replace import rebuild
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import ancestors, toposort
from graphc.ops.checks import CheckAndRaise
from graphc.ops.subtensor import Entry, Subtensor
from graphc.printing import Print
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Role, ScanSpec
from graphc_runtime.linker import Frame, Layout, Step, make_linker
from graphc_runtime.thunk import Register, Thunk


def without_repeats(graph: FunctionGraph) -> FunctionGraph:
    """The graph with its loops rewritten, and those in them; itself if there is nothing to do.

    Examples:
        >>> from graphc.function.schedule import without_repeats
        >>> x = pt.vector("x")
        >>> graph = graphc.FunctionGraph([x], [x + 1])
        >>> without_repeats(graph) is graph
        True
    """
    if graph.destruction.destroyers:
        return graph
    memo: dict[Variable, Variable] = {}
    for node in graph.nodes:
        if type(node.op) is Scan and node.op.body_obstacle is not None:
            # Its inputs may come from loops before it.
            inputs = rebuild(node.inputs, memo, copy_nodes=False, strict=False)
            memo.update(_Loop(graph, node, inputs).replacements())
    if not memo:
        return graph
    return FunctionGraph(graph.inputs, rebuild(graph.outputs, memo, copy_nodes=False, strict=False))


class PythonLoop(Scan):
    """A loop of which not all rows are wanted.

    Attributes:
        kept: by name, how many of the most recent rows are read, and how many are cut off at the other end of
            the trace before; the trace has no more than these rows.
    """

    kept: dict[str, tuple[int, int]]

    def _form(self) -> tuple[object, ...]:
        return (*super()._form(), *sorted(self.kept.items()))

    def _output_types(self, inputs: Sequence[Variable]) -> list[tuple[str | None, TensorType]]:
        found = super()._output_types(inputs)
        for i, (name, type_) in enumerate(found):
            rows = type_.shape[0] if name in self.kept else 0
            if name in self.kept and rows is not None:
                type_ = type_.clone(shape=(min(rows, sum(self.kept[name])), *type_.shape[1:]))
                found[i] = name, type_
        return found


class Prologue(Op):
    """Values that the iterations of a loop share. Inputs are the number of steps, then those of a graph;
    where there is no iteration, outputs are of their types and of no meaning.

    Args:
        graph: what is computed.
        name: of the loop.
        is_measured: a loop without iterations asks its body for the sizes of rows, so that values are needed.
    """

    body_obstacle = "it is what iterations of a loop that runs in Python have in common"

    def __init__(self, graph: FunctionGraph, name: str, is_measured: bool) -> None:
        self.compiled_graph, self.name, self._is_measured = graph, name, is_measured

    def __str__(self) -> str:
        return f"Prologue{{{self.name}}}"

    def make_node(self, *inputs: Variable) -> Apply:
        return Apply(self, inputs, [v.type() for v in self.compiled_graph.outputs])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        for cell, value in zip(output_storage, self.run(inputs), strict=True):
            cell[0] = value

    def run(self, inputs: Sequence[np.ndarray], body: Executor | None = None) -> list[np.ndarray]:
        """Values of the outputs; ``body`` runs the graph, by default op by op in NumPy."""
        steps, *values = inputs
        executor = body or ReferenceExecutor(self.compiled_graph)
        try:
            if int(steps) > 0 or self._is_measured:
                return list(executor.run(values))
        except (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
            if int(steps) > 0:
                raise
        types = [v.type for v in self.compiled_graph.outputs]
        return [
            np.zeros([size or 0 for size in t.shape], t.numpy_dtype)
            for t in types
            if isinstance(t, TensorType)
        ]


R = TypeVar("R", bound=Role)


class _Loop:
    """The rewrites of one loop.

    Args:
        graph: the graph that it is in.
        node: its application there.
        inputs: what it is to be applied to.
    """

    def __init__(self, graph: FunctionGraph, node: Apply, inputs: Sequence[Variable]) -> None:
        self._graph, self._node = graph, node
        op: Any = node.op
        self._op = op
        self._spec: ScanSpec = op.spec
        self._inner: dict[tuple[str, int], Variable] = dict(
            zip(self._spec.inner_input_names(), op.compiled_graph.inputs, strict=True)
        )
        self._outer = dict(zip(self._spec.outer_input_names(), inputs, strict=True))
        self._traces = dict(zip(self._spec.outer_output_names(), node.outputs, strict=True))

    def replacements(self) -> dict[Variable, Variable]:
        """Replacements of the outputs that are read."""
        op = self._op
        body: FunctionGraph = op.compiled_graph
        if body.destruction.destroyers:
            return {}
        results = dict(zip(self._spec.inner_output_names(), without_repeats(body).outputs, strict=True))
        results = self._hoisted(self._needed(results))
        names = list(self._spec.inner_input_names())
        arguments: list[Variable] = [self._inner[name] for name in names]
        outputs = [results[name] for name in self._spec.inner_output_names()]
        options = {
            key: getattr(op, key)
            for key in ("name", "reverse", "truncate_gradient", "checkpoint_every", "unroll", "progress")
        }
        new: Scan = Scan(self._spec, arguments, outputs, **options)
        if new.body_obstacle is not None:
            loop = PythonLoop(self._spec, arguments, outputs, **options)
            loop.kept = self._kept()
            new = loop
        node = new.make_node(*(self._outer[name] for name in self._spec.outer_input_names()))
        node.location = self._node.location
        found = dict(zip(new.spec.outer_output_names(), node.outputs, strict=True))
        return {self._traces[name]: v for name, v in found.items()}

    # -- what is needed --------------------------------------------------------------------------------------

    def _needed(self, results: dict[tuple[str, int], Variable]) -> dict[tuple[str, int], Variable]:
        """Leaves out states and outputs that nobody reads, unless that would leave out a check."""
        spec = self._spec
        states = {role.name for role in (*spec.states, *spec.untraced)}
        work = [name for name, v in self._traces.items() if self._graph.clients.get(v)]
        if spec.is_while:
            work.append("until")
        needed: set[str] = set()
        owner = {v: name for (name, _), v in self._inner.items() if name in states}
        while work:
            name = work.pop()
            if name in needed:
                continue
            needed.add(name)
            values = [v for (each, _), v in results.items() if each == name]
            work += [owner[v] for v in ancestors(values, self._inner.values()) if v in owner]
        kept = {key: v for key, v in results.items() if key[0] in needed}
        gone = set(toposort(list(results.values()))).difference(toposort(list(kept.values())))
        if any(isinstance(node.op, CheckAndRaise) for node in gone):
            return results
        self._spec = spec.replace(
            states=_only(spec.states, needed),
            outputs=_only(spec.outputs, needed),
            untraced=_only(spec.untraced, needed),
        )
        return kept

    # -- what is the same in all iterations ------------------------------------------------------------------

    def _hoisted(self, results: dict[tuple[str, int], Variable]) -> dict[tuple[str, int], Variable]:
        """Computes in a prologue what does not depend on the iteration; returns what is left to compute."""
        outer = {self._inner[role.name, 0]: self._outer[role.name] for role in self._spec.invariants}
        body = FunctionGraph(list(self._inner.values()), list(results.values()))
        moved = _common(body, outer)
        if not moved:
            return results
        measured = any(None in results[output.name, 0].type.shape for output in self._spec.outputs)
        name = self._op.name or "scan"
        # What depends on less comes first, and is apart: a loop around this one may compute it once, too.
        for sources in sorted(dict.fromkeys(moved.values()), key=len):
            nodes = {node for node, needed in moved.items() if needed == sources}
            graph = segment(body, [node for node in moved if node in nodes], lambda v: False)
            prologue = Prologue(graph, name, measured)
            made = prologue.make_node(self._outer["n_steps"], *(outer[v] for v in graph.inputs))
            made.location = self._node.location
            outer.update(zip(graph.outputs, made.outputs, strict=True))
        memo: dict[Variable, Variable] = {}
        for v in outer:
            if v.owner in moved and any(client not in moved for client, _ in body.clients[v]):
                name = self._spec.with_unique("common")
                self._spec = self._spec.replace(invariants=(*self._spec.invariants, Invariant(name)))
                memo[v] = self._inner[name, 0] = v.type.make_variable(name)
                self._outer[name] = outer[v]
        outputs = rebuild(list(results.values()), memo, copy_nodes=False, strict=True)
        left = set(ancestors(outputs, self._inner.values()))
        used = {role.name for role in self._spec.invariants if self._inner[role.name, 0] in left}
        self._spec = self._spec.replace(invariants=_only(self._spec.invariants, used))
        return dict(zip(results, outputs, strict=True))

    # -- which rows are read ---------------------------------------------------------------------------------

    def _kept(self) -> dict[str, tuple[int, int]]:
        found = {}
        for role in (*self._spec.states, *self._spec.outputs):
            read = _Reads(self._graph, self._op.reverse)
            if read.follow(self._traces[role.name], 0, 0):
                found[role.name] = (read.rows, read.cut)
        return found


def _only(roles: Iterable[R], names: Collection[str]) -> tuple[R, ...]:
    return tuple(role for role in roles if role.name in names)


def _common(body: FunctionGraph, invariants: Iterable[Variable]) -> dict[Apply, frozenset[Variable]]:
    """Nodes that each iteration needs, and that compute the same in each, with the invariants that they
    depend on; none if that is not worth it.
    """
    # Thunks of users may be lazy, too.
    lazy = {
        node
        for node in body.nodes
        if is_conditional(node) or not type(node.op).make_thunk.__module__.startswith("graphc.")
    }
    demands = LazyDemands(body.nodes, body.outputs, lazy)
    sources = {v: frozenset({v}) for v in invariants}
    found: dict[Apply, frozenset[Variable]] = {}
    for node in body.nodes:
        variables = [v for v in node.inputs if not isinstance(v, Constant)]
        if (
            variables
            and all(v in sources for v in variables)
            and all(isinstance(v.type, TensorType) for v in node.outputs)
            and not isinstance(node.op, Print)
            and demands.of_node(node).always
        ):
            found[node] = frozenset().union(*(sources[v] for v in variables))
            sources.update(dict.fromkeys(node.outputs, found[node]))
    # Views and sizes cost less than handing them over.
    return found if any(not node.op.view_map and _has_elements(node) for node in found) else {}


def _has_elements(node: Apply) -> bool:
    return any(v.type.ndim for v in (*node.inputs, *node.outputs))


class _Reads:
    """Rows of a trace that are read.

    Args:
        graph: where it is read.
        is_flipped: the most recent row is the first one.

    Attributes:
        rows: how many of the most recent rows.
        cut: how many of the oldest rows readers leave out, at most.
    """

    def __init__(self, graph: FunctionGraph, is_flipped: bool) -> None:
        self._graph, self._is_flipped = graph, is_flipped
        self.rows = self.cut = 0

    def follow(self, v: Variable, front: int, back: int) -> bool:
        """Adds what reads a trace without some rows at its two ends.

        Returns:
            Whether all of it is known.
        """
        for client, position in self._graph.clients.get(v, ()):
            if not (isinstance(client, Apply) and isinstance(client.op, Subtensor) and position == 0):
                return False
            if not self._index(client, client.op.idx_list[0], front, back):
                return False
        return True

    def _index(self, node: Apply, entry: Entry, front: int, back: int) -> bool:
        start, stop, step = entry.start, entry.stop, 1 if entry.step is None else entry.step
        if isinstance(start, str) or isinstance(stop, str) or isinstance(step, str) or step < 1:
            return False
        if entry.single:
            assert start is not None
            return self._end(start + 1 if start >= 0 else start, front, back)
        if start is not None and start < 0:
            return (stop is None or stop < 0) and self._end(start, front, back)
        if stop is not None and stop >= 0:
            return self._end(stop, front, back)
        return step == 1 and self.follow(node.outputs[0], front + (start or 0), back - (stop or 0))

    def _end(self, distance: int, front: int, back: int) -> bool:
        """Adds rows up to a distance from the end at the back, if it is negative, or from the front."""
        if (distance < 0) is self._is_flipped:
            return distance == 0
        near, far = (front, back) if self._is_flipped else (back, front)
        self.rows, self.cut = max(self.rows, near + abs(distance)), max(self.cut, far)
        return True


def _views_of_loops(graph: FunctionGraph, why: Mapping[Apply, str | None]) -> set[Apply]:
    """Views between loops in Python and others: of initial rows, and of traces of which few rows are kept.

    Machine code would copy them, each as large as a state. They are NumPy's: nobody writes into what a
    `PythonLoop` is given or returns, as there is none where operations overwrite their inputs, and results
    that are views are copied for the caller.

    Args:
        graph: where they are. why: for each node why it is not native.
    """
    found: set[Apply] = set()
    loops = {node: node.op for node in graph.nodes if isinstance(node.op, PythonLoop)}
    few: set[Variable] = set()
    for node, op in loops.items():
        traces = dict(zip(op.spec.outer_output_names(), node.outputs, strict=True))
        few.update(traces[name] for name in op.kept)
    views = [node for node in graph.nodes if loops and why[node] is None and _is_view(node)]
    for node in views:
        if node.inputs[0] in few or node.inputs[0].owner in found:
            found.add(node)
    for node in reversed(views):
        if all(client in found or client in loops for client, _ in graph.clients[node.outputs[0]]):
            found.add(node)
    return found


def _is_view(node: Apply) -> bool:
    others = node.inputs[1:]
    return list(node.op.view_map.values()) == [[0]] and all(isinstance(v, Constant) for v in others)


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
        self._views = _views_of_loops(fgraph, self._why) if grain == "segment" else set()
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
        for native, nodes in groups:
            is_whole = native and self._grain == "segment"
            for part in [nodes] if is_whole else [[node] for node in nodes]:
                self._add(native, part)
        self._add_order(demands)
        self.layout = Layout(self._steps, inputs, outputs, constants)

    def _native(self, node: Apply) -> bool:
        return self._grain != "python" and self._why[node] is None and node not in self._views

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
        if self._grain != "python" and node not in self._views:
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
            step.overwrites = node.op.overwritten
            step.readers = tuple(dict.fromkeys(k for reader in readers for k in steps_of[reader]))
            if demands is not None:
                # Readers that are needed whenever the node is can run first; the others may never run.
                same = (demands.always, demands.of_node(node))
                needed = (r for r in readers if demands.of_node(r) in same and not is_conditional(r))
                step.after = tuple(dict.fromkeys(k for reader in needed for k in steps_of[reader]))
