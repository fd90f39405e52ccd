# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Function.memory_plan``: where a compiled function keeps its intermediate values, and for how long.

The plan is part of the manifest of the compiled code (`passes.buffer.plan_memory` writes it), so
functions that come from the cache or from a pickle have it too. In its picture time runs to the right, memory
upwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from graphc.emit import all_nodes
from graphc.emit.emitter import NAMES
from graphc.function.budget import human, more
from graphc.function.compiled import Compiled
from graphc.inspect.writers import LETTER, group, label, rectangle, saved, svg, text_table
from graphc.ir.size import Argument, Number, Recorded
from graphc.library.places import Interval, aligned, live_bytes, pack
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.function.base import BaseFunction
    from graphc_runtime.manifest import ArraySpec


_MARGIN, _LEFT, _HEAD, _GAP = 14.0, 74.0, 36.0, 22.0
_HEIGHT, _LANE = 260.0, 22.0
_FOOT = 92.0
_COLOURS = 8
_STYLE = """
.title { font-weight: bold } .axis { fill: #57606a }
.right { text-anchor: end } .middle { text-anchor: middle }
.buffer { stroke: #57606a; stroke-width: 1 }
.c0 { fill: #ddf4ff } .c1 { fill: #dafbe1 } .c2 { fill: #fff8c5 } .c3 { fill: #ffebe9 }
.c4 { fill: #fbefff } .c5 { fill: #ffe2cc } .c6 { fill: #d1f0ec } .c7 { fill: #e6e7ff }
.memory { fill: #f6f8fa; stroke: #d0d7de; stroke-width: 1 } .grid { stroke: #d0d7de; stroke-width: 1 }
.alive { stroke: #8250df; stroke-width: 1.4; stroke-dasharray: 4 3 } .alive-text { fill: #8250df }
"""


class _Drawing:
    def __init__(self, plan: MemoryPlan) -> None:
        self._plan = plan
        count = max(len(plan.steps), 1)
        self._step = min(max(640.0 / count, 26.0), 90.0)
        self._width = self._step * count
        self._y = _HEAD

    def text(self) -> str:
        """The picture."""
        body = [line for workspace in self._plan.workspaces for line in self._workspace(workspace)]
        others = [buffer for buffer in self._plan.buffers if buffer.place != "workspace"]
        if others:
            lent = any(buffer.place.startswith("result") for buffer in others)
            body += self._lanes(others, "stack, arena, results" if lent else "stack and arena")
        body += self._steps()
        title = label("title", 0, 10, self._title())
        return svg((_LEFT + self._width, self._y + _FOOT), _MARGIN, _STYLE, [title, *body])

    def _title(self) -> str:
        plan = self._plan
        if not plan.workspaces:
            return f"memory plan of {plan.name}: no workspace"
        limit = "" if plan.budget is None else f"; {_budget(plan)}"
        if plan.peak is None:
            return f"memory plan of {plan.name}{limit}"
        return (
            f"memory plan of {plan.name}: peak {human(plan.peak)}, {human(plan.total)} without reuse{limit}"
        )

    def _workspace(self, workspace: Workspace) -> Iterator[str]:
        buffers = [buffer for buffer in self._plan.buffers if buffer.workspace == workspace.number]
        if not workspace.peak:
            yield from self._lanes(buffers, f"workspace {workspace.number}")
            return
        top, scale = self._y, _HEIGHT / workspace.peak
        yield rectangle("memory", (_LEFT, top, self._width, _HEIGHT))
        yield label("axis right", _LEFT - 6, top + 10, human(workspace.peak))
        yield label("axis right", _LEFT - 6, top + _HEIGHT, "0")
        for buffer in buffers:
            height = (buffer.bytes or 0) * scale
            y = top + _HEIGHT - (buffer.offset or 0) * scale - height
            yield from self._buffer(buffer, y, height)
        if workspace.alive:
            y = top + _HEIGHT - workspace.alive * scale
            end = _LEFT + self._width
            yield f'<line class="alive" x1="{_LEFT}" y1="{y:.1f}" x2="{end:.1f}" y2="{y:.1f}"/>'
            if y > top + 14:
                yield label("alive-text right", _LEFT - 6, y + 4, human(workspace.alive))
        self._y += _HEIGHT + _GAP

    def _lanes(self, buffers: list[PlannedBuffer], title: str) -> Iterator[str]:
        """One line for each buffer, where sizes are not known or places do not matter."""
        yield label("axis", _LEFT, self._y - 6, title)
        height = _LANE * len(buffers)
        yield rectangle("memory", (_LEFT, self._y, self._width, height))
        for i, buffer in enumerate(buffers):
            yield from self._buffer(buffer, self._y + i * _LANE + 2, _LANE - 4)
        self._y += height + _GAP

    def _buffer(self, buffer: PlannedBuffer, y: float, height: float) -> Iterator[str]:
        number = self._plan.buffers.index(buffer)
        x = _LEFT + buffer.first * self._step
        width = (buffer.last - buffer.first + 1) * self._step
        place = f"{number}: {_kind(buffer)}, {human(buffer.bytes)}, steps {buffer.first} to {buffer.last}"
        origin = f"{buffer.op} at {_short(buffer.location)}" if buffer.location else buffer.op
        box = (x + 1, y, max(width - 2, 2), max(height, 1))
        elements = [rectangle(f"buffer c{number % _COLOURS}", box, ' rx="2"')]
        if height >= 12:
            name = f"{number} {_op(buffer.op)}"
            size = "" if buffer.bytes is None else f" {human(buffer.bytes)}"
            texts = (name + size, name, str(number))
            fitting = next((text for text in texts if len(text) * LETTER <= width - 6), "")
            elements.append(label("middle", x + width / 2, y + height / 2 + 4, fitting))
        yield from group(f"{place}\n{origin}", _nodes(buffer.node), elements)

    def _steps(self) -> Iterator[str]:
        """The names of the steps below the picture."""
        y = self._y - _GAP + 12
        for i, step in enumerate(self._plan.steps):
            x = _LEFT + (i + 0.5) * self._step
            name = _op(step.op) or step.what
            text = name if len(name) <= 12 else name[:11] + "…"
            title = f"step {i}: {step.what}, {step.op} {_short(step.location)}"
            turned = f' transform="rotate(-55 {x:.1f} {y:.1f})"'
            yield from group(title, _nodes(step.node), [label("axis right", x, y, f"{i} {text}", turned)])


def _nodes(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)


def _op(text: str) -> str:
    """The name of an op without its parameters."""
    return text.partition("{")[0]


# What is known of an argument: its value, its shape, or nothing.
Given: TypeAlias = np.ndarray | tuple[int, ...] | None
_DTYPES = {text: name for name, text in NAMES.items()} | {"index": "int64"}
_KINDS = {"scf.if": "conditional"}


@record()
class PlannedBuffer:
    """An intermediate buffer.

    Attributes:
        place: "workspace", "stack", "arena" (allocated in a loop), or "result 0" (before that is written).
        workspace: number of its workspace, None elsewhere.
        dtype: of its elements; storage only, so unsigned integers show as signed ones.
        shape: its sizes: numbers, or expressions of the sizes of arguments as text.
        bytes: its size, None where it depends on sizes that were not given.
        offset: where it begins in its workspace, None where that depends on sizes that were not given.
        first, last: numbers of the first and the last step that use it.
        op: the op it comes from, as text. location: the user's line that applied the op.
        node: its number among the nodes of the graph and its loops; None where it comes from none.
    """

    place: str
    workspace: int | None
    dtype: str
    shape: tuple[int | str, ...]
    bytes: Number
    offset: Number
    first: int
    last: int
    op: str
    location: str
    node: int | None = None


@record()
class PlannedCopy:
    """A loop that only copies.

    Attributes:
        step: its number.
        source, target: "input", "result" or "buffer".
        bytes: how many, None if unknown.
        why: the reason, as far as the compiler knows it.
        op, location: as of `PlannedBuffer`.
    """

    step: int
    source: str
    target: str
    bytes: Number
    why: str
    op: str
    location: str


@record()
class Step:
    """A step of a function: a loop nest or a call. `what` is `loop` or the name of the function called."""

    what: str
    op: str
    location: str
    node: int | None = None


@record()
class Recomputed:
    """A value that is computed again instead of being kept (see ``memory_budget`` of `graphc.function`).

    Attributes:
        bytes: what it would take. times: how often it is computed again, with what that takes.
        flops: the operations that this takes, ``exp`` of an element being one. op, location, node: as above.
    """

    bytes: int
    times: int
    flops: int
    op: str
    location: str
    node: int | None = None


@record()
class Workspace:
    """A block of memory that buffers share.

    Attributes:
        number: of the workspace in the plan.
        peak: its bytes; None, like the others, where sizes are missing.
        alive: the most bytes in use at one step, which no layout can do without.
        total: the bytes of all its buffers, which is what they would need without reuse.
    """

    number: int
    peak: Number
    alive: Number
    total: Number


@record()
class MemoryPlan:
    """The memory of a function; ``print`` shows it as text, notebooks as a picture.

    Attributes:
        name: of the function.
        buffers: the intermediate buffers.
        copies: loops that only copy.
        steps: what the function does, in order.
        workspaces: the blocks of memory, usually one at most.
        budget: bytes that the function was to need at most; None for no limit.
        recomputed: values that are computed again, to need no more.
        extra_flops: operations that are done more than without a budget.
    """

    name: str
    buffers: list[PlannedBuffer] = field(default_factory=list)
    copies: list[PlannedCopy] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    workspaces: list[Workspace] = field(default_factory=list)
    budget: int | None = None
    recomputed: list[Recomputed] = field(default_factory=list)
    extra_flops: int = 0

    @property
    def peak(self) -> Number:
        """Bytes of all workspaces."""
        return _sum(workspace.peak for workspace in self.workspaces)

    @property
    def total(self) -> Number:
        """Bytes that the buffers of the workspaces would need without reuse."""
        return _sum(workspace.total for workspace in self.workspaces)

    @property
    def alive(self) -> Number:
        """The most bytes in use at one step, summed over the workspaces: a lower bound of the peak."""
        return _sum(workspace.alive for workspace in self.workspaces)

    def to_svg(self, file: str | PathLike[str] | None = None) -> str:
        """Draw the plan: a buffer is a box from its first to its last step, and from its offset to its end.

        Args:
            file: also write the picture to this path.

        Returns:
            The text of a self-contained SVG picture. Without sizes, each buffer has a line of its own.
        """
        return saved(_Drawing(self).text(), file)

    _repr_svg_ = to_svg

    def __str__(self) -> str:
        return _text(self)


def _text(plan: MemoryPlan) -> str:
    """See `MemoryPlan`."""
    rows = [_row(i, buffer) for i, buffer in enumerate(plan.buffers)]
    lines = [_summary(plan)]
    if rows:
        rows.insert(0, ("", "place", "type", "bytes", "offset", "steps", "from"))
        lines += ["  " + line for line in text_table(rows, range(7))]
    lines += _again(plan)
    for copy in plan.copies:
        size = "" if copy.bytes is None else f" of {human(copy.bytes)}"
        lines.append(
            f"  copy{size} at step {copy.step}, {copy.source} to {copy.target}: {copy.why}"
            f"{_origin(copy.op, copy.location)}"
        )
    return "\n".join(lines)


def _again(plan: MemoryPlan) -> list[str]:
    """Lines about what is computed again to keep to the budget."""
    if plan.budget is None:
        return []
    lines = [f"  {_budget(plan)}"]
    for value in plan.recomputed:
        times = "" if value.times == 1 else f" {value.times} times"
        lines.append(
            f"  computed again{times}: {human(value.bytes)}, {value.flops:,} operations"
            f"{_origin(value.op, value.location)}"
        )
    return lines


def _budget(plan: MemoryPlan) -> str:
    """One line about the budget of a plan."""
    count = len(plan.recomputed)
    if not count:
        return f"budget {human(plan.budget)}: nothing is computed again"
    values = "1 value is" if count == 1 else f"{count} values are"
    return f"budget {human(plan.budget)}: {values} computed again, with {more(plan.extra_flops)}"


def _short(location: str) -> str:
    """A location with the file's path as short as it can be."""
    file, colon, rest = location.partition(":")
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return (file if relative.startswith("..") else relative) + colon + rest


def _kind(buffer: PlannedBuffer) -> str:
    """dtype and shape."""
    return f"{buffer.dtype} ({', '.join(map(str, buffer.shape))})"


def _summary(plan: MemoryPlan) -> str:
    count = sum(buffer.place == "workspace" for buffer in plan.buffers)
    if not plan.buffers:
        return f"memory plan of {plan.name}: no intermediate buffers"
    if not count:
        return f"memory plan of {plan.name}: no workspace"
    blocks = "one workspace" if len(plan.workspaces) == 1 else f"{len(plan.workspaces)} workspaces"
    head = f"memory plan of {plan.name}: {count} buffers in {blocks}"
    if plan.peak is None:
        return f"{head}; give shapes to see bytes: f.memory_plan(x, ...) or f.memory_plan((3, 4), ...)"
    used, total = human(plan.alive), human(plan.total)
    return f"{head}, peak {human(plan.peak)}, at most {used} in use, {total} without reuse"


def _row(number: int, buffer: PlannedBuffer) -> tuple[str, ...]:
    place = buffer.place if not buffer.workspace else f"{buffer.place} {buffer.workspace}"
    offset = "" if buffer.place != "workspace" else "?" if buffer.offset is None else str(buffer.offset)
    steps = f"{buffer.first}-{buffer.last}" if buffer.last > buffer.first else str(buffer.first)
    size = "?" if buffer.bytes is None else str(buffer.bytes)
    origin = _origin(buffer.op, buffer.location).removeprefix(", from ")
    return (f"{number}", place, _kind(buffer), size, offset, steps, origin)


def _origin(op: str, location: str) -> str:
    if not op:
        return ""
    return f", from {op}" + (f" at {_short(location)}" if location else "")


def _sum(values: Iterator[Number]) -> Number:
    listed = list(values)
    return None if None in listed else sum(value for value in listed if value is not None)


def memory_plan(function: BaseFunction, values: Sequence[np.ndarray]) -> MemoryPlan:
    """See `Function.memory_plan`."""
    plan = MemoryPlan(function.report.name, budget=function.report.options.memory_budget)
    given = given_values(function, values)
    for segment in function.executor.segments():
        _Reader(plan, segment).read(given)
    return plan


def given_values(function: BaseFunction, values: Sequence[object]) -> list[Given]:
    """Known values of the kernel's arguments: arrays, or shapes as tuples, or None.

    Raises:
        TypeError: there are more values than inputs.
    """
    if len(values) > len(function.inputs):
        raise TypeError(f"{function.report.name} takes {len(function.inputs)} inputs, got {len(values)}")
    if function.executor.whole is None:
        return []
    given: list[Given] = [value if _is_shape(value) else np.asarray(value) for value in values]
    given += [None] * (len(function.inputs) - len(values))
    given += [np.asarray(cell[0]) for cell in function.calls.cells]
    return given


def arguments_of(native: Compiled, given: list[Given]) -> list[Argument]:
    """The arguments of a kernel: inputs, then the results that are not computed in an input.

    Args:
        native: the executable.
        given: what is known of the inputs, as of `given_values`.

    Raises:
        TypeError: a value has another number of dimensions than its input.
    """
    fgraph, signature = native.fgraph, native.executable.manifest.signature
    specs = [*signature.arguments[: len(fgraph.inputs)], *signature.results]
    names = [v.name or f"input{i}" for i, v in enumerate(fgraph.inputs)]
    names += [v.name or f"result{i}" for i, v in enumerate(fgraph.outputs)]
    given = given + [None] * (len(fgraph.inputs) - len(given))
    known = given + _result_shapes(native, given)
    arguments = [_argument(*item) for item in zip(names, specs, known, strict=True)]
    donated = {len(fgraph.inputs) + result for _, result in signature.donated}
    return [argument for i, argument in enumerate(arguments) if i not in donated]


def _result_shapes(native: Compiled, given: list[Given]) -> list[Given]:
    """The shapes of the results, as far as they follow from what is known of the arguments."""
    signature = native.executable.manifest.signature
    unknown: list[Given] = [None] * len(signature.results)
    if any(value is None for value in given):
        return unknown
    arrays: list[Given] = [
        np.zeros(value, spec.dtype) if isinstance(value, tuple) else value
        for value, spec in zip(given, signature.arguments, strict=False)
    ]
    try:
        return [*native.result_shapes(arrays)]
    except (ValueError, TypeError, IndexError):
        # Zeros stand for elements that were not given, and need not pass the checks.
        if any(isinstance(value, tuple) for value in given):
            return unknown
        raise


def _is_shape(value: object) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple) and all(isinstance(size, int | np.integer) for size in value)


class _Reader:
    """Reads the plan of one native executable."""

    def __init__(self, plan: MemoryPlan, native: Compiled) -> None:
        self._plan, self._native = plan, native
        self._nodes = all_nodes(native.fgraph)
        self._manifest = native.executable.manifest

    def read(self, given: list[Given]) -> None:
        """Adds buffers, steps and copies to the plan."""
        arguments = arguments_of(self._native, given)
        for noted in self._manifest.memory:
            self._read(noted, Recorded(noted["expressions"], arguments))
        again = self._manifest.extra.get("recomputed", {})
        self._plan.extra_flops += again.get("flops", 0)
        for entry in again.get("arrays", ()):
            numbers = entry["bytes"], entry["times"], entry["flops"]
            node = self._number(entry["node"])
            self._plan.recomputed.append(Recomputed(*numbers, *self._origin(entry["node"]), node))

    def _read(self, record: dict[str, Any], sizes: Recorded) -> None:
        before = len(self._plan.steps)
        positions = [position for position, _, _ in record["steps"]]
        for _, node, what in record["steps"]:
            kind = _KINDS.get(what, "loop" if what.startswith("scf.") else what)
            self._plan.steps.append(Step(kind, *self._origin(node), self._number(node)))

        def step(position: int, *, last: bool = False) -> int:
            """The step at or after a position in the function, or at or before it."""
            count = sum(p <= position if last else p < position for p in positions)
            return before + max(min(count - last, len(positions) - 1), 0)

        for entry in record["workspaces"]:
            self._workspace(entry, sizes, step)
        for entry in record["others"]:
            life = step(entry["first"]), step(entry["last"], last=True)
            count = sizes.product([size[0] for size in entry["shape"] if isinstance(size, list)])
            bytes_ = _bytes(count, entry["item"] * _known(entry["shape"]))
            self._buffer(entry, sizes, entry["place"], None, bytes_, None, (life[0], max(life)))
        for entry in record["copies"]:
            bytes_ = _bytes(sizes.product(entry["sizes"]), entry["item"])
            at = step(entry["at"])
            origin = self._origin(entry["node"])
            self._plan.copies.append(
                PlannedCopy(at, entry["from"], entry["to"], bytes_, entry["why"], *origin)
            )

    def _workspace(self, entry: dict[str, Any], sizes: Recorded, step: Any) -> None:
        buffers = entry["buffers"]
        counts = [sizes.product(key) for key in entry["keys"]]
        lengths = [_bytes(counts[b["key"]], b["units"]) for b in buffers]
        lifetimes = [Interval(b["first"], b["last"]) for b in buffers]
        known = [length for length in lengths if length is not None]
        offsets: Sequence[Number] = [None] * len(buffers)
        peak = alive = total = None
        if len(known) == len(buffers):
            if entry["fixed"]:
                scale = aligned(counts[0] or 0) if entry["keys"][0] else 1
                offsets, peak = [scale * b["offset"] for b in buffers], scale * entry["peak"]
            else:
                offsets, peak = pack([aligned(length) for length in known], lifetimes)
            alive, total = live_bytes(known, lifetimes), sum(known)
        number = len(self._plan.workspaces)
        self._plan.workspaces.append(Workspace(number, peak, alive, total))
        for b, length, offset in zip(buffers, lengths, offsets, strict=True):
            first = step(b["first"])
            life = first, max(step(b["last"], last=True), first)
            self._buffer(b, sizes, "workspace", number, length, offset, life)

    def _buffer(
        self,
        entry: dict[str, Any],
        sizes: Recorded,
        place: str,
        workspace: int | None,
        bytes_: Number,
        offset: Number,
        life: tuple[int, int],
    ) -> None:
        shape = tuple(_size(sizes, size) for size in entry["shape"])
        dtype = _DTYPES.get(entry["dtype"], entry["dtype"])
        origin = self._origin(entry["node"])
        self._plan.buffers.append(
            PlannedBuffer(
                place, workspace, dtype, shape, bytes_, offset, *life, *origin, self._number(entry["node"])
            )
        )

    def _number(self, node: str) -> int | None:
        """The number of a node such as `n12`."""
        index = int(node[1:]) if node else len(self._nodes)
        return index if index < len(self._nodes) else None

    def _origin(self, node: str) -> tuple[str, str]:
        """Op and line of a node."""
        index = self._number(node)
        if index is None:
            return "", ""
        found = self._nodes[index]
        return str(found.op), "" if found.location is None else str(found.location)


def _argument(name: str, spec: ArraySpec, known: Given) -> Argument:
    if known is None:
        return Argument(name, spec.shape)
    if isinstance(known, tuple):
        shape, value = known, None
    else:
        shape, value = known.shape, int(known) if known.ndim == 0 and known.dtype.kind in "biu" else None
    if len(shape) != spec.rank:
        raise TypeError(f"{name} has {spec.rank} dimensions, got the shape {tuple(shape)}")
    return Argument(name, shape, value)


def _known(shape: Sequence[int]) -> int:
    """The product of the sizes that are numbers."""
    return int(np.prod([size for size in shape if isinstance(size, int)], dtype=object)) if shape else 1


def _bytes(count: Number, units: int) -> Number:
    return None if count is None else count * units


def _size(sizes: Recorded, size: int | list[int]) -> int | str:
    if isinstance(size, int):
        return size
    value = sizes.value(size[0])
    if value is not None:
        return value
    return sizes.text(size[0])
