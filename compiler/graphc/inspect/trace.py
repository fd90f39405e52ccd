# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Trace``: what calls of a function did, thunk by thunk, as text or in Chrome's format."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphc.function import iterations
from graphc.function.base import BaseFunction, Tracer
from graphc.function.compiled import Compiled
from graphc.function.iterations import Iteration
from graphc.function.modes import build_op_schedule
from graphc.function.schedule import Schedule
from graphc.function.steps import NodeStep, Segment
from graphc.graph.basic import Apply, SourceLocation
from graphc.graph.contract import Executor
from graphc.graph.thunks import Cells
from graphc.inspect.nan_guard import GuardedExecutor
from graphc.inspect.writers import text_table
from graphc_runtime.callable_type import resume, suspend
from graphc_runtime.record import record
from graphc_runtime.thunk import Register, Thunk

_HEADER = ("thunk", "runs", "total us", "mean us", "bytes", "kind", "op", "line")
_LEFT = range(5, 8)
# Longer lists of ops are cut.
_WIDTH = 60


def table(trace: Trace) -> str:
    """A line for each thunk, in the order in which they first ran."""
    count, calls = len(trace.events), len(trace.calls)
    in_thunks = sum(event.duration for event in trace.events if not event.iterations)
    name = trace.calls[0].name if calls else "nothing"
    in_calls = sum(call.duration for call in trace.calls)
    head = (
        f"trace of {name}: {calls} call{'s' * (calls != 1)} in {_us(in_calls)} us, "
        f"{count} runs of thunks, {_us(in_thunks)} us in them"
    )
    runs: dict[int, list[TraceEvent]] = {}
    for event in trace.events:
        runs.setdefault(event.thunk, []).append(event)
    first = {number: min(event.start for event in events) for number, events in runs.items()}
    rows = [_row(number, runs[number]) for number in sorted(runs, key=first.__getitem__)]
    return "\n".join([head, *(text_table([_HEADER, *rows], left=_LEFT) if rows else ())])


def _row(number: int, events: list[TraceEvent]) -> tuple[str, ...]:
    event = events[0]
    total = sum(each.duration for each in events)
    what = event.op if len(event.op) <= _WIDTH else f"{event.op[: _WIDTH - 3]}..."
    if event.iterations:
        what = f"in {event.iterations[-1].loop}: {what}"
    errors = {each.error: None for each in events if each.error}
    what += "".join(f" (raised {error})" for error in errors)
    return (
        str(number),
        str(len(events)),
        _us(total),
        _us(total / len(events)),
        str(sum(each.bytes for each in events)),
        "native" if event.native else "python",
        what,
        event.line,
    )


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f}"


def chrome(trace: Trace) -> dict[str, Any]:
    """Complete events ("X") for calls and thunks, in microseconds."""
    process = os.getpid()
    events: list[dict[str, Any]] = [
        _event(call.name, "call", call.start, call.duration, process, call.thread) for call in trace.calls
    ]
    for event in trace.events:
        kind = "native" if event.native else "python"
        entry = _event(event.name, kind, event.start, event.duration, process, event.thread)
        entry["args"] = {"ops": event.op, "line": event.line, "bytes": event.bytes, "order": event.order}
        if event.iterations:
            entry["args"]["iteration"] = ", ".join(map(str, event.iterations))
        if event.asked:
            entry["args"]["asked for inputs"] = list(event.asked)
        if event.error:
            entry["args"]["error"] = event.error
        events.append(entry)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _event(name: str, kind: str, start: int, duration: int, process: int, thread: int) -> dict[str, Any]:
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start / 1e3,
        "dur": duration / 1e3,
        "pid": process,
        "tid": thread,
    }


class TracedNative(Executor):
    """Calls an executable as its function does, and records the call as one event.

    Args:
        native: a graph with its executable.
        trace: gains the events.
    """

    def __init__(self, native: Compiled, trace: Trace) -> None:
        self._native, self._trace = native, trace
        self._executable = native.executable
        self.nodes: list[Apply] = native.fgraph.nodes

    @property
    def is_on_device(self) -> bool:
        return self._native.is_on_device

    def hold(self, cells: Sequence[Register]) -> None:
        self._native.hold(cells)

    @property
    def name(self) -> str:
        """The op if there is one, else the number of ops."""
        ops = len(self.nodes)
        return str(self.nodes[0].op) if ops == 1 else f"native function of {ops} ops"

    def run(self, values: Sequence[Any], *, out: Sequence[object] = ()) -> list[Any]:
        """One value for each input of the graph to one for each output; `out` as in `Compiled.run`."""
        signature = self._executable.manifest.signature
        count = len(signature.inputs)
        donated = {argument for argument, _ in signature.donated}
        inputs = [
            np.array(value, order="C") if i in donated else value for i, value in enumerate(values[:count])
        ]
        # Cells of its own: the function stores updates itself.
        cells = [[value] for value in values[count:]]
        unread = signature.cells[len(cells) :]
        cells += [[np.empty([size or 0 for size in spec.shape], spec.dtype)] for spec in unread]
        call = self._executable.bind(cells, where=self._native.where)
        returned: list[Any] = []

        def run() -> None:
            if not any(array is not None for array in out):
                returned.append(call(*inputs))
            else:
                returned.append(call(*inputs, out=out[0] if signature.returns == "single" else out))

        def outputs(_: Any) -> list[Any]:
            (results,) = returned
            results = [results] if signature.returns == "single" else list(results or ())
            return results + [cells[update.cell][0] for update in signature.updates]

        self._trace.timed(self, run, outputs, native=True)
        return outputs(None)


@record(frozen=True)
class TraceEvent:
    """One run of a thunk.

    Attributes:
        order: number of the event, from 0.
        thunk: number of the thunk, in the order in which thunks first ran.
        name: the op, or what the native segment is.
        ops: the ops that the thunk runs.
        lines: the users' lines that applied them, without repetition.
        start: nanoseconds since the trace began.
        duration: nanoseconds.
        bytes: size of its outputs, by ``Type.get_size``; 0 while it asks for inputs.
        native: whether it is machine code.
        asked: positions of inputs that a lazy thunk asked for instead of finishing.
        iterations: the iterations of loops it ran in, the outermost first.
        thread: number of the thread, see ``threading.get_native_id``.
        error: type of the exception that it raised, or None.
    """

    order: int
    thunk: int
    name: str
    ops: tuple[str, ...]
    lines: tuple[SourceLocation, ...]
    start: int
    duration: int
    bytes: int
    native: bool
    asked: tuple[int, ...] = ()
    iterations: tuple[Iteration, ...] = ()
    thread: int = 0
    error: str | None = None

    @property
    def op(self) -> str:
        """The ops as text."""
        return ", ".join(self.ops)

    @property
    def line(self) -> str:
        """The first line as text, and how many there are more."""
        if not self.lines:
            return ""
        more = f" and {len(self.lines) - 1} more" if len(self.lines) > 1 else ""
        return f"{self.lines[0]}{more}"


@record(frozen=True)
class TracedCall:
    """One call of a traced function, from checked arguments to results; times as in `TraceEvent`."""

    name: str
    start: int
    duration: int
    thread: int


class Trace(Tracer):
    """Records calls of a function while it is open: ``with f.trace() as t: f(x)``.

    Other threads' calls are recorded, too. A trace can be opened again and goes on then.

    Args:
        function: the function.
        per_op: run each op for itself, see `Function.trace`.

    Attributes:
        events: runs of thunks, in the order in which they ended.
        calls: calls of the function.
    """

    def __init__(self, function: BaseFunction, *, per_op: bool = False) -> None:
        self.events: list[TraceEvent] = []
        self.calls: list[TracedCall] = []
        self._function = function
        self._per_op = per_op
        self._numbers: dict[int, int] = {}
        self._steps: list[Any] = []
        self._began = 0
        self._lock = threading.Lock()
        self._attached: list[tuple[BaseFunction, Callable[..., Any] | None, int | None]] = []
        # Compiling is over before the first call.
        self._executors: dict[int, Any] = {id(function): self._traced(function)}

    def __enter__(self) -> Trace:
        if not self._began:
            self._began = time.perf_counter_ns()
        self.attach(self._function)
        return self

    def __exit__(self, *_: object) -> None:
        while self._attached:
            f, machine, address = self._attached.pop()
            f.calls.runner, f.calls.machine, f.tracer = f.executor, machine, None
            resume(f, address)

    def attach(self, f: BaseFunction) -> None:
        """Records calls of this function too: the traced one, or one for some of its outputs.

        Raises:
            RuntimeError: another trace of it is open.
        """
        with self._lock:
            if f.tracer is self:
                return
            if f.tracer is not None:
                raise RuntimeError(f"another trace of {f.report.name} is open; close it first")
            if id(f) not in self._executors:
                self._executors[id(f)] = self._traced(f)
            machine = f.calls.machine
            f.calls.runner, f.calls.machine, f.tracer = self._executors[id(f)], None, self
            self._attached.append((f, machine, suspend(f)))

    def _traced(self, f: BaseFunction) -> Any:
        inner: Executor
        if self._per_op:
            inner = f.op_schedule.observed(self)
        elif isinstance(f.executor, Schedule | GuardedExecutor):
            inner = f.executor.observed(self)
        elif isinstance(f.executor, Compiled):
            inner = TracedNative(f.executor, self)
        else:
            inner = build_op_schedule(f.fgraph, "reference", f.report.name).observed(self)
        return _TracedExecutor(inner, self, f.report.name)

    # -- recording -------------------------------------------------------------------------------------------

    def observe(self, step: Segment | NodeStep, thunk: Thunk, cells: Cells) -> Thunk:
        """The thunk, with a clock; see `graphc.function.steps.Observer`."""
        return _TracedThunk(step, thunk, cells, self)

    def timed(
        self, step: object, run: Callable[[], object], outputs: Callable[[object], list[object]], native: bool
    ) -> Any:
        """Runs a thunk and records it.

        Args:
            step: what runs; has ``name`` and ``nodes``.
            run: runs it; returns what it asks for.
            outputs: its outputs, from what ``run`` returned.
            native: whether it is machine code.
        """
        start = time.perf_counter_ns()
        try:
            asked = run()
        except BaseException as error:
            self._record(step, start, time.perf_counter_ns(), native, error=type(error).__name__)
            raise
        end = time.perf_counter_ns()
        self._record(step, start, end, native, asked, outputs(asked))
        return asked

    def _record(
        self,
        step: Any,
        start: int,
        end: int,
        native: bool,
        asked: Any = None,
        values: Sequence[Any] = (),
        error: str | None = None,
    ) -> None:
        size = _bytes_of(step, values)
        with self._lock:
            number = self._numbers.setdefault(id(step), len(self._numbers))
            if number == len(self._steps):
                # Keeps the step, so that its id stays its own.
                lines = dict.fromkeys(node.location for node in step.nodes if node.location is not None)
                self._steps.append((step, step.name, tuple(str(n.op) for n in step.nodes), tuple(lines)))
            _, name, ops, locations = self._steps[number]
            event = TraceEvent(
                order=len(self.events),
                thunk=number,
                name=name,
                ops=ops,
                lines=locations,
                start=start - self._began,
                duration=end - start,
                bytes=size,
                native=native,
                asked=tuple(asked or ()) if isinstance(asked, Sequence) else (),
                iterations=iterations.current(),
                thread=threading.get_native_id(),
                error=error,
            )
            self.events.append(event)

    def add_call(self, name: str, start: int, end: int) -> None:
        """Records a call of a function."""
        self.calls.append(TracedCall(name, start - self._began, end - start, threading.get_native_id()))

    # -- showing ---------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return table(self)

    def to_chrome(self) -> dict[str, object]:
        """The trace in the format of ``chrome://tracing`` and https://ui.perfetto.dev, as plain data."""
        return chrome(self)

    def save(self, path: str | Path) -> None:
        """Writes `to_chrome` as JSON."""
        import json

        Path(path).write_text(json.dumps(self.to_chrome()), encoding="utf-8")


class _TracedThunk(Thunk):
    """Runs a thunk and records it."""

    __slots__ = ("_cells", "_inner", "_native", "_step", "_trace")

    def __init__(self, step: Segment | NodeStep, inner: Thunk, cells: Cells, trace: Trace) -> None:
        self._step, self._inner, self._cells, self._trace = step, inner, cells, trace
        self._native = isinstance(step, Segment)

    @property
    def lazy(self) -> bool:
        return self._inner.lazy

    def __call__(self) -> Any:
        return self._trace.timed(self._step, self._inner, self._outputs, self._native)

    def _outputs(self, asked: object) -> list[object]:
        return [] if asked else [register[0] for register in self._cells.output_registers]


class _TracedExecutor(Executor):
    """Runs an executor and records the call."""

    def __init__(self, inner: Executor, trace: Trace, name: str) -> None:
        self._inner, self._trace, self._name = inner, trace, name

    @property
    def is_on_device(self) -> bool:
        return self._inner.is_on_device

    def hold(self, cells: Sequence[Register]) -> None:
        self._inner.hold(cells)

    def run(self, values: Sequence[Any], own: Sequence[int] = (), **options: Sequence[object]) -> list[Any]:
        """As an `Executor`; memory of values in ``own`` is left alone."""
        start = time.perf_counter_ns()
        try:
            results: list[Any] = self._inner.run(values, **options)
        finally:
            self._trace.add_call(self._name, start, time.perf_counter_ns())
        return results


def _bytes_of(step: object, values: Sequence[np.ndarray]) -> int:
    """The size of what a step has computed: of values of a node, as their types say."""
    variables = step.outputs if isinstance(step, NodeStep) else ()
    if len(variables) != len(values):
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
    return sum(v.type.get_size(v.type.get_shape_info(x)) for v, x in zip(variables, values, strict=True))
