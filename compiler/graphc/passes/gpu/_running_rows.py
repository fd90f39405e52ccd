# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running operations along memory: a block of threads has a part of a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.ir.value import all_of, larger, parts_of, smaller
from graphc.lowering.carried import carry, span, when
from graphc.passes.gpu._calls import LibraryCall
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._lines import Lines
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    grid_dim,
    on_first_thread,
    thread_id,
)
from graphc.passes.gpu._prefix import THREADS, BlockPrefix
from graphc_dialects._mlir import ir

# Lines that occupy a device without parts; the most parts of a line.
_ENOUGH, _PARTS = 512, 1024
_BLOCKS = 1 << 20
Values = list[ir.Value]


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
        parts = larger(blocks_for(lines.steps, each, _PARTS), 1)
        self._parts = build.select(lines.count >= _ENOUGH, 1, parts)
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
