# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, and linear recurrences.

Running operations across memory: a thread has a part of a line, and neighbours have neighbouring lines.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import build
from graphc.ir.value import larger, parts_of, smaller
from graphc.lowering.carried import carry, span, when
from graphc.passes.gpu._calls import LibraryCall, calls_of
from graphc.passes.gpu._kernel import Kernel, allocate, block_shape, blocks_for
from graphc.passes.gpu._lines import CALLS, Lines, lies_along_rows
from graphc.passes.gpu._notation import global_position
from graphc.passes.gpu._running_rows import RowKernels
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

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
