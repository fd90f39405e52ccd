# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, and linear recurrences.

Running operations across memory: a thread has a part of a line, and neighbours have neighbouring lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.lifetimes import root_of
from graphc.ir.value import all_of, larger, parts_of, smaller
from graphc.library.arrays.running import KINDS as ALONG_ROWS
from graphc.lowering.carried import carry, span, when
from graphc.lowering.device_code.recurrences import LINEAR, RECURRENCE
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._kernel import Kernel, allocate, block_shape, blocks_for
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    global_position,
    grid_dim,
    on_first_thread,
    thread_id,
)
from graphc.passes.gpu._reduce import THREADS, BlockPrefix, Running
from graphc.passes.gpu._rows import product, split
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_dialects.recurrence import KINDS
from graphc_runtime.record import record

RUNNING = "running"
CALLS = (RUNNING, RECURRENCE)


class Lines:
    """The lines of a call; sizes are made at the insertion point.

    Attributes:
        running: how a number is made from the one before.
        count: how many lines there are.
        steps: how many numbers are made of each.
        itemsize: of a number, in bytes.
    """

    def __init__(self, call: LibraryCall) -> None:
        is_recurrence = call.kernel.name == RECURRENCE
        kind, dtype = call.attribute("kind"), call.dtypes[-1]
        names = (*KINDS, "linear") if is_recurrence else ALONG_ROWS
        count = len(call.buffers) - 1 - is_recurrence
        if not 0 <= kind < len(names) or count != (2 if is_recurrence and kind == LINEAR else 1):
            fail(call.op, f"'{call.kernel.name}' has no kind {kind} of {max(count, 0)} arrays")
        self.running = Running(names[kind], dtype)
        self.itemsize = int(np.dtype(dtype).itemsize)
        self._reverse = bool(call.attribute("reverse"))
        self._keeps = bool(call.attribute("keep_initial")) if is_recurrence else False
        *operands, self._result = call.buffers
        self._initial = operands.pop() if is_recurrence else None
        self._operands = operands
        sizes = build.dims(self._result)
        self._sizes = sizes[1:] if is_recurrence else sizes[:-1]
        self.steps = call.numbers[0] if is_recurrence else sizes[-1]
        self.count = product(self._sizes)
        self._first_axis = is_recurrence

    def split(self, line: ir.Value) -> list[ir.Value]:
        """The indices that the number of a line stands for."""
        return split(line, self._sizes)

    def first(self, line: Sequence[ir.Value]) -> ir.Value:
        """The number before the first step."""
        if self._initial is None:
            return self.running.neutral()[0]
        known = _splat_of(self._initial)
        if known is not None:
            return known
        return self._load(self._initial, build.const_index(0), line)

    def step(self, number: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Operands of a step."""
        row = self._row(number)
        return [self._load(buffer, row, line) for buffer in self._operands]

    def store(self, value: ir.Value, number: ir.Value, line: Sequence[ir.Value]) -> None:
        """Writes what a step has made."""
        row = self._row(number)
        if self._keeps and not self._reverse:
            row = row + 1
        self._store(value, row, line)

    def store_first(self, line: Sequence[ir.Value]) -> None:
        """Writes the number before the first step, if the result has it."""
        if self._keeps:
            self._store(self.first(line), self.steps if self._reverse else build.const_index(0), line)

    @property
    def keeps_first(self) -> bool:
        """True if the result has the number before the first step."""
        return self._keeps

    def _row(self, number: ir.Value) -> ir.Value:
        if not self._reverse:
            return number
        return self.steps - 1 - number

    def _place(self, buffer: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Indices in a buffer; sizes of 1 serve all."""
        indices = [row, *line] if self._first_axis else [*line, row]
        shape = list(ir.MemRefType(buffer.type).shape)
        return [build.const_index(0) if size == 1 else x for size, x in zip(shape, indices, strict=True)]

    def _load(self, buffer: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> ir.Value:
        return buffer[self._place(buffer, row, line)]

    def _store(self, value: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> None:
        self._result[self._place(self._result, row, line)] = value


def lies_along_rows(call: LibraryCall) -> bool:
    """True if elements of a line lie side by side, and not elements of different lines."""
    shape = list(ir.MemRefType(call.buffers[-1].type).shape)
    return call.kernel.name == RUNNING or all(size == 1 for size in shape[1:])


def _splat_of(buffer: ir.Value) -> ir.Value | None:
    """The real number that all elements of a constant array are, at the insertion point, or None."""
    owner, kind = root_of(buffer).owner, ir.MemRefType(buffer.type).element_type
    if isinstance(owner, ir.Block) or owner.name != "memref.get_global" or isinstance(kind, ir.ComplexType):
        return None
    module = owner.operation
    while module.name != "builtin.module":
        module = module.parent.operation
    name = ir.FlatSymbolRefAttr(owner.attributes["name"]).value
    for op in module.regions[0].blocks[0].operations:
        attributes = op.operation.attributes
        if op.operation.name == "memref.global" and ir.StringAttr(attributes["sym_name"]).value == name:
            value = attributes["initial_value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return build.create("arith.constant", [kind], [], value=value.get_splat_value()).result
    return None


# Lines that occupy a device without parts; the most parts of a line.
_ENOUGH_ALONG, _PARTS_ALONG = 512, 1024


class RowKernels:
    """The two kernels of a call: what each part of a line comes to, and then the numbers.

    Args:
        call: its operation is to be erased afterwards.
        each: steps of a part, at least.
    """

    def __init__(self, call: LibraryCall, each: int) -> None:
        self._totals, self._kernel = Kernel(call.op, "totals"), Kernel(call.op, "running")
        with self._totals.host():
            self._lines = lines = Lines(call)
            self._own = 8 if lines.running.parts * lines.itemsize <= 8 else 4
            self._plan(each)

    def _plan(self, each: int) -> None:
        """Sizes of blocks and parts."""
        lines = self._lines
        warps = blocks_for(lines.steps, WARP * self._own, THREADS // WARP)
        self._threads = larger(warps, 1) * WARP
        self._tile = self._threads * self._own
        parts = larger(blocks_for(lines.steps, each, _PARTS_ALONG), 1)
        self._parts = build.select(lines.count >= _ENOUGH_ALONG, 1, parts)
        chunk = parts_of(lines.steps, self._parts)
        self._chunk = parts_of(chunk, self._tile) * self._tile
        self._grid = smaller(lines.count, _BLOCKS)
        self._several = self._parts > 1
        kept = build.select(self._several, self._parts, 0)
        self._sums = [allocate([lines.count, kept], lines.running.type) for _ in range(lines.running.parts)]

    def lower(self) -> None:
        """The kernels and their launches."""
        self._write(self._totals, self._total)
        self._write(self._kernel, self._numbers)
        with self._totals.host():
            grid = build.select(self._several, self._grid, 0)
        self._totals.launch([grid, self._parts], [self._threads])
        self._kernel.launch([self._grid, self._parts], [self._threads])

    def _write(self, kernel: Kernel, work: Callable[[ir.Value], None]) -> None:
        """A kernel that does something with the block's part of each of its lines."""
        lines = self._lines
        with kernel.body():
            self._prefix = BlockPrefix(kernel, lines.running)
            size = THREADS * self._own
            size += size // WARP
            self._shared = [kernel.shared([size], lines.running.type) for _ in range(lines.running.parts)]
            self._thread, self._part = thread_id(), block_id(1)
            first = self._part * self._chunk
            self._stop = smaller(first + self._chunk, lines.steps)
            self._first = first
            start, stride = block_id(), grid_dim()
            with span(lines.count, start=start, step=stride) as number:
                self._line = lines.split(number)
                work(number)

    def _total(self, line: ir.Value) -> None:
        """Writes what the part comes to."""
        running = self._lines.running

        def tile(start: ir.Value, values: Values) -> Values:
            _, total = self._prefix.before(self._folded(start)[-1])
            return running.combine(values, total)

        values = carry(self._stop, running.neutral(), tile, start=self._first, step=self._tile)
        with on_first_thread():
            for value, buffer in zip(values, self._sums, strict=True):
                buffer[line, self._part] = value

    def _numbers(self, line: ir.Value) -> None:
        """Writes the numbers of the part."""
        lines, running = self._lines, self._lines.running
        if lines.keeps_first:
            both = [x.equals(0) for x in (self._thread, self._part)]
            with when(all_of(both)):
                lines.store_first(self._line)
        before = running.apply(lines.first(self._line), self._parts_before(line))

        def tile(start: ir.Value, values: Values) -> Values:
            folded = self._folded(start)
            others, total = self._prefix.before(folded[-1])
            mine = running.apply(values[0], others)
            for number, step in enumerate(folded):
                build.create("memref.store", [], [running.apply(mine, step), *self._own_place(number)])
            barrier()
            self._each_element(start, lambda at, place: self._store(at, place))
            barrier()
            return [running.apply(values[0], total)]

        carry(self._stop, [before], tile, start=self._first, step=self._tile)

    def _parts_before(self, line: ir.Value) -> Values:
        """Combination of the parts before this one."""
        running = self._lines.running
        each = parts_of(self._part, block_dim())
        first = self._thread * each

        def fold(number: ir.Value, values: Values) -> Values:
            at = first + number
            inside = at < self._part
            place = [line, build.select(inside, at, 0)]
            found = [b[place] for b in self._sums]
            pairs = zip(found, running.neutral(), strict=True)
            return running.combine(values, [build.select(inside, x, y) for x, y in pairs])

        return self._prefix.before(carry(each, running.neutral(), fold))[1]

    def _folded(self, start: ir.Value) -> list[Values]:
        """Inclusive prefix over the thread's steps of a tile."""
        running = self._lines.running
        self._each_element(start, self._load)
        barrier()
        found: list[Values] = []
        for number in range(self._own):
            place = [self._own_place(number, buffer) for buffer in self._shared]
            step = [build.create("memref.load", [running.type], each).result for each in place]
            found.append(running.combine(found[-1], step) if found else step)
        return found

    def _each_element(self, start: ir.Value, work: Callable[[ir.Value, ir.Value], None]) -> None:
        """Does something with elements of a tile, neighbouring threads with neighbours."""
        for number in range(self._own):
            at = block_dim() * number + self._thread
            work(start + at, _apart(at))

    def _load(self, number: ir.Value, place: ir.Value) -> None:
        lines = self._lines
        inside = number < self._stop
        found = lines.step(smaller(number, self._stop - 1), self._line)
        for value, other, buffer in zip(found, lines.running.neutral(), self._shared, strict=True):
            buffer[place] = build.select(inside, value, other)

    def _store(self, number: ir.Value, place: ir.Value) -> None:
        with when(number < self._stop):
            buffer = self._shared[0]
            self._lines.store(buffer[place], number, self._line)

    def _own_place(self, number: int, buffer: ir.Value | None = None) -> Sequence[ir.Value]:
        """Position of one of the thread's own steps in shared memory."""
        place = self._thread * self._own + number
        return [self._shared[0] if buffer is None else buffer, _apart(place)]


def _apart(place: ir.Value) -> ir.Value:
    """Places of which neighbouring threads' do not meet in one bank."""
    return place + place // WARP


_THREADS = 256
# Threads that occupy a device, the most parts of a line, and the fewest steps of one.
_ENOUGH, _PARTS, _STEPS = 1 << 17, 64, 64
_BLOCKS = 1 << 20
# Steps whose operands are read together, so that one does not wait for the memory of the one before.
_AHEAD = 8
Values = list[ir.Value]


class ColumnKernels:
    """The two kernels of a call: what each part of a line comes to, and then the numbers.

    Args:
        call: its operation is to be erased afterwards.
    """

    def __init__(self, call: LibraryCall) -> None:
        self._totals, self._kernel = Kernel(call.op, "totals"), Kernel(call.op, "running")
        with self._totals.host():
            self._lines = lines = Lines(call)
            self._block = block_shape(lines.count, _THREADS)
            parts = parts_of(build.const_index(_ENOUGH), larger(lines.count, 1))
            steps = blocks_for(lines.steps, _STEPS, _PARTS)
            self._parts = larger(smaller(parts, steps), 1)
            self._chunk = parts_of(lines.steps, self._parts)
            self._several = self._parts > 1
            kept = build.select(self._several, self._parts, 0)
            self._sums = [
                allocate([kept, lines.count], lines.running.type) for _ in range(lines.running.parts)
            ]

    def lower(self) -> None:
        """The kernels and their launches."""
        self._write(self._totals, self._total)
        self._write(self._kernel, self._numbers)
        with self._totals.host():
            columns = blocks_for(self._lines.count, self._block[0], _BLOCKS)
            rows = parts_of(self._parts, self._block[1])
            none = build.select(self._several, columns, 0)
        self._totals.launch([none, rows], self._block)
        self._kernel.launch([columns, rows], self._block)

    def _write(self, kernel: Kernel, work: Callable[[ir.Value], None]) -> None:
        """A kernel that does something with the thread's part of each of its lines."""
        lines = self._lines
        with kernel.body():
            (line, stride), (part, parts) = global_position(0), global_position(1)
            with span(self._parts, start=part, step=parts) as outer:
                self._part = outer
                self._first = smaller(self._part * self._chunk, lines.steps)
                self._stop = smaller(self._first + self._chunk, lines.steps)
                with span(lines.count, start=line, step=stride) as number:
                    self._line = lines.split(number)
                    work(number)

    def _total(self, line: ir.Value) -> None:
        """Writes what the part comes to."""
        running = self._lines.running
        values = self._steps(running.neutral(), lambda _, step, values: running.combine(values, step))
        for value, buffer in zip(values, self._sums, strict=True):
            buffer[self._part, line] = value

    def _numbers(self, line: ir.Value) -> None:
        """Writes the numbers of the part."""
        lines, running = self._lines, self._lines.running
        if lines.keeps_first:
            with when(self._part.equals(0)):
                lines.store_first(self._line)

        def before(part: ir.Value, values: Values) -> Values:
            place = [part, line]
            step = [b[place] for b in self._sums]
            return [running.apply(values[0], step)]

        def number(at: ir.Value, step: Values, values: Values) -> Values:
            made = running.apply(values[0], step)
            lines.store(made, at, self._line)
            return [made]

        self._steps(carry(self._part, [lines.first(self._line)], before), number)

    def _steps(self, values: Values, step: Callable[[ir.Value, Values, Values], Values]) -> Values:
        """All steps of the part, in order; operands are read for several of them at a time."""
        rest = self._first + (self._stop - self._first) // _AHEAD * _AHEAD

        def several(start: ir.Value, values: Values) -> Values:
            places = [start + i for i in range(_AHEAD)]
            read = [self._lines.step(place, self._line) for place in places]
            for place, operands in zip(places, read, strict=True):
                values = step(place, operands, values)
            return values

        def one(at: ir.Value, values: Values) -> Values:
            return step(at, self._lines.step(at, self._line), values)

        values = carry(rest, values, several, start=self._first, step=_AHEAD)
        return carry(self._stop, values, one, start=rest)


@record()
class GpuRunning(Pass):
    """Makes two kernels of each running sum, product or extreme and of each linear recurrence.

    The first one computes what each part of a line comes to, and is not launched where lines have one part;
    the second one combines the parts before its own, and writes the numbers. Where the elements of a line lie
    side by side, a block of threads has a part: it is read into shared memory in tiles, each thread combines
    4 or 8 neighbours, warps by shuffles, and the block through shared memory. Otherwise a thread has a part
    of a line, neighbouring threads neighbouring lines, and operands are read for 8 steps at a time. Parts are
    combined in order, and follow from sizes: equal calls give equal bits, and there are no atomics. 512 lines
    along memory, or 131,072 across, have one part each; those across are then computed step by step.

    Steps of a linear recurrence `h = a h + b` are combined as pairs: (a, b), then (a', b'), is
    (a a', a' b + b'). Rounding differs from that of single steps, and infinities do where products of `a`, or
    of what is multiplied, over- or underflow. A sum is the result of at most about n / 2048 + 30 additions
    one after the other instead of n.

    Source: G. Blelloch, "Prefix sums and their applications" (1990); S. Sengupta et al., "Scan primitives for
    GPU computing" (2007).

    Attributes:
        each: steps of a part along memory, at least.
    """

    each: int = 8192

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, CALLS):
            if lies_along_rows(call):
                RowKernels(call, self.each).lower()
            else:
                ColumnKernels(call).lower()
            call.erase()
            self.count("calls")
