# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, and linear recurrences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from graphc.ir import build
from graphc.ir.diagnostics import fail
from graphc.ir.lifetimes import root_of
from graphc.ir.value import larger, parts_of, smaller
from graphc.ir.walk import definition, symbol_of
from graphc.library.arrays import KINDS as ALONG_ROWS
from graphc.library.sorting import by_block
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, carry_in_groups, span, when
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.lowering.scans.recurrences import LINEAR, RECURRENCE
from graphc.ops.reduce import extreme_of_nothing
from graphc.passes import Pass
from graphc.passes.gpu import _notation
from graphc.passes.gpu._host import LibraryCall, calls_of
from graphc.passes.gpu._kernel import GRID, Kernel, allocate, block_shape, blocks_for, module_of
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    block_id,
    global_position,
    grid_dim,
    on_first_thread,
    split,
    thread_id,
)
from graphc_dialects._mlir import ir
from graphc_dialects.recurrence import KINDS
from graphc_runtime.record import record

# The most threads of a block.
THREADS = 256
_METHODS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and_", "or": "or_"}
# Of bytes that are 0 or 1.
_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and", "and": "and", "or": "or"}


class Running:
    """An associative operation, of tuples of numbers.

    A step of a linear recurrence is the pair (a, b); two steps are the pair (a a', a' b + b').

    Args:
        kind: "add", "mul", "max", "min", "and", "or" or "linear".
        dtype: of the numbers; bools are bytes.

    Attributes:
        dtype: of the numbers in memory. type: of the numbers.
        parts: number of components of a tuple.
    """

    def __init__(self, kind: str, dtype: np.dtype) -> None:
        self._linear = kind == "linear"
        is_bool = dtype == np.bool_
        self._kind = _OF_BOOLS[kind] if is_bool and not self._linear else kind
        self.dtype = np.dtype("uint8") if is_bool else dtype
        self.parts = 2 if self._linear else 1
        self._b = ScalarBuilder(ir)

    @property
    def type(self) -> ir.Type:
        return self._b.type(self.dtype)

    def neutral(self) -> list[ir.Value]:
        """The tuple that changes nothing; a sum begins with -0.0, to which 0.0 and -0.0 can be added."""
        zero = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(self.dtype.kind, 0)
        numbers: Sequence[complex]
        if self._linear:
            numbers = 1, zero
        elif self._kind in ("max", "min"):
            numbers = [extreme_of_nothing(self._kind, self.dtype)]
        else:
            ones = int(np.invert(np.zeros((), self.dtype))) if self._kind == "and" else 1
            numbers = [zero if self._kind in ("add", "or") else ones]
        return [self._b.const(number, self.dtype).value for number in numbers]

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """`left` and then `right`."""
        if self._linear:
            product = self._b.mul(self._scalar(left[0]), self._scalar(right[0]))
            return [product.value, self.apply(left[1], right)]
        return [self.apply(left[0], right)]

    def apply(self, value: ir.Value, step: Sequence[ir.Value]) -> ir.Value:
        """The number that comes after one."""
        b, x, first = self._b, self._scalar(value), self._scalar(step[0])
        if self._linear:
            return b.add(b.mul(first, x), self._scalar(step[1])).value
        return getattr(b, _METHODS[self._kind])(x, first).value

    def _scalar(self, value: ir.Value) -> Scalar:
        return Scalar(value, self.dtype)


class BlockPrefix:
    """Prefixes over the threads of a block, which has threads along x only, whole warps.

    Args:
        kernel: it gets a buffer of one tuple a warp.
        running: the operation.
    """

    def __init__(self, kernel: Kernel, running: Running) -> None:
        self._running = running
        self._buffers = [kernel.shared([WARP], running.type) for _ in range(running.parts)]

    def before(self, values: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """Prefix over all threads before one, and the total over all; all threads of the block get here."""
        return by_block.prefix(_notation, values, self._running, self._buffers, THREADS)


RUNNING = "running"
CALLS = (RUNNING, RECURRENCE)


@record()
class Lines:
    """Lines of numbers, each of which is made from the one before; sizes are made at the insertion point.

    Attributes:
        running: how a number is made from the one before.
        operands: of the steps, one or two arrays.
        result: of the numbers; it may be the only operand.
        reverse: whether steps go from the last element to the first.
        initial: the numbers before the first steps; then the first axis is that of the steps.
        number: how many numbers are made of each line, if `initial` is given.
        keeps_first: whether the result has the number before the first step.
        steps: how many numbers are made of each line.
        count: how many lines there are.
    """

    running: Running
    operands: Sequence[ir.Value]
    result: ir.Value
    reverse: bool = False
    initial: ir.Value | None = None
    number: ir.Value | None = None
    keeps_first: bool = False

    def __post_init__(self) -> None:
        sizes = build.dims(self.result)
        self._sizes = sizes[:-1] if self.number is None else sizes[1:]
        self.steps = sizes[-1] if self.number is None else self.number
        self.count = product(self._sizes)

    @classmethod
    def of(cls, call: LibraryCall) -> Lines:
        """The lines of a call."""
        is_recurrence = call.kernel.name == RECURRENCE
        kind = call.attribute("kind")
        names = (*KINDS, "linear") if is_recurrence else ALONG_ROWS
        count = len(call.buffers) - 1 - is_recurrence
        if not 0 <= kind < len(names) or count != (2 if is_recurrence and kind == LINEAR else 1):
            fail(call.op, f"'{call.kernel.name}' has no kind {kind} of {max(count, 0)} arrays")
        *operands, result = call.buffers
        running, reverse = Running(names[kind], call.dtypes[-1]), bool(call.attribute("reverse"))
        if not is_recurrence:
            return cls(running, operands, result, reverse)
        *operands, initial = operands
        keeps_first = bool(call.attribute("keep_initial"))
        return cls(running, operands, result, reverse, initial, call.numbers[0], keeps_first)

    def split(self, line: ir.Value) -> list[ir.Value]:
        """The indices that the number of a line stands for."""
        return split(line, self._sizes)

    def first(self, line: Sequence[ir.Value]) -> ir.Value:
        """The number before the first step."""
        initial = self.initial
        if initial is None:
            return self.running.neutral()[0]
        known = _splat_of(initial)
        return initial[self._place(initial, build.const_index(0), line)] if known is None else known

    def step(self, number: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Operands of a step."""
        row = self._row(number)
        return [buffer[self._place(buffer, row, line)] for buffer in self.operands]

    def store(self, value: ir.Value, number: ir.Value, line: Sequence[ir.Value]) -> None:
        """Writes what a step has made."""
        row = self._row(number)
        self._store(value, row + 1 if self.keeps_first and not self.reverse else row, line)

    def store_first(self, line: Sequence[ir.Value], where: Callable[[], ir.Value]) -> None:
        """Writes the number before the first step, if the result has it, by one of the threads."""
        if self.keeps_first:
            with when(where()):
                self._store(self.first(line), self.steps if self.reverse else build.const_index(0), line)

    def _row(self, number: ir.Value) -> ir.Value:
        return self.steps - 1 - number if self.reverse else number

    def _place(self, buffer: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> list[ir.Value]:
        """Indices in a buffer; sizes of 1 serve all."""
        indices = [*line, row] if self.number is None else [row, *line]
        shape = list(ir.MemRefType(buffer.type).shape)
        return [build.const_index(0) if size == 1 else x for size, x in zip(shape, indices, strict=True)]

    def _store(self, value: ir.Value, row: ir.Value, line: Sequence[ir.Value]) -> None:
        self.result[self._place(self.result, row, line)] = value


def lies_along_rows(call: LibraryCall) -> bool:
    """True if elements of a line lie side by side, and not elements of different lines."""
    shape = list(ir.MemRefType(call.buffers[-1].type).shape)
    return call.kernel.name == RUNNING or all(size == 1 for size in shape[1:])


def _splat_of(buffer: ir.Value) -> ir.Value | None:
    """The real number that all elements of a constant array are, at the insertion point, or None."""
    made, kind = definition(root_of(buffer), "memref.get_global"), ir.MemRefType(buffer.type).element_type
    if made is None or isinstance(kind, ir.ComplexType):
        return None
    name = ir.FlatSymbolRefAttr(made.attributes["name"]).value
    for op in [op.operation for op in module_of(made).regions[0].blocks[0].operations]:
        if op.name == "memref.global" and symbol_of(op) == name:
            value = op.attributes["initial_value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return build.create("arith.constant", [kind], [], value=value.get_splat_value()).result
    return None


Values = list[ir.Value]
# Where lines lie along memory: lines that occupy a device without parts, and the most parts of a line.
_ENOUGH_ALONG, _PARTS_ALONG = 512, 1024
# Where they lie across it: threads of a block and those that occupy a device, the most parts of a line, and
# the fewest steps of one.
_THREADS, _ENOUGH, _PARTS, _STEPS = 256, 1 << 17, 64, 64
# Steps whose operands are read together, so that one does not wait for the memory of the one before.
_AHEAD = 8


class _Kernels:
    """Two kernels: what each part of a line comes to, and then the numbers.

    Args:
        op: before which they are launched.
        lines: makes the lines.
        each: steps of a part, at least.
    """

    def __init__(self, op: ir.Operation, lines: Callable[[], Lines], each: int) -> None:
        totals, kernel = Kernel(op, "totals"), Kernel(op, "running")
        with totals.host():
            self._lines = made = lines()
            self._running = made.running
            parts, chunk, grid, threads = self._plan(each)
            self._parts, self._chunk = parts, chunk
            # Those of the kernel at hand: number of the part, and its steps.
            self._part = self._first = self._stop = parts
            several = parts > 1
            sizes = self._place(made.count, build.select(several, parts, 0))
            self._sums = [allocate(sizes, made.running.type) for _ in range(made.running.parts)]
            none = build.select(several, grid[0], 0)
        self._write(totals, self._total)
        self._write(kernel, self._numbers)
        totals.launch([none, grid[1]], threads)
        kernel.launch(grid, threads)

    def _plan(self, each: int) -> tuple[ir.Value, ir.Value, list[ir.Value], Sequence[ir.Value]]:
        """Number of parts, steps of a part, the grid, and threads of a block."""
        raise NotImplementedError

    # Writes a kernel that does something with its part of each of its lines; what the part comes to; the
    # numbers of the part. Where what a part comes to is kept: neighbouring threads have neighbours.
    _write: Callable[[Kernel, Callable[[ir.Value], None]], None]
    _total: Callable[[ir.Value], None]
    _numbers: Callable[[ir.Value], None]
    _place: Callable[[ir.Value, ir.Value], list[ir.Value]]

    def _keep(self, line: ir.Value, values: Values) -> None:
        """Notes what the part comes to."""
        for value, buffer in zip(values, self._sums, strict=True):
            buffer[self._place(line, self._part)] = value


class _Along(_Kernels):
    """Lines along memory: a block of threads has a part of a line."""

    def _plan(self, each: int) -> tuple[ir.Value, ir.Value, list[ir.Value], Sequence[ir.Value]]:
        lines = self._lines
        self._own = 8 if lines.running.parts * lines.running.dtype.itemsize <= 8 else 4
        threads = larger(blocks_for(lines.steps, WARP * self._own, THREADS // WARP), 1) * WARP
        self._tile = threads * self._own
        parts = larger(blocks_for(lines.steps, each, _PARTS_ALONG), 1)
        parts = build.select(lines.count >= _ENOUGH_ALONG, 1, parts)
        chunk = parts_of(parts_of(lines.steps, parts), self._tile) * self._tile
        return parts, chunk, [smaller(lines.count, GRID), parts], [threads]

    @staticmethod
    def _place(line: ir.Value, part: ir.Value) -> list[ir.Value]:
        return [line, part]

    def _write(self, kernel: Kernel, work: Callable[[ir.Value], None]) -> None:
        with kernel.body():
            self._prefix = BlockPrefix(kernel, self._running)
            size = THREADS * self._own
            size += size // WARP
            self._shared = [kernel.shared([size], self._running.type) for _ in range(self._running.parts)]
            self._thread = thread_id()
            self._part = block_id(1)
            self._first = self._part * self._chunk
            self._stop = smaller(self._first + self._chunk, self._lines.steps)
            with span(self._lines.count, block_id(), grid_dim()) as number:
                self._line = self._lines.split(number)
                work(number)

    def _total(self, line: ir.Value) -> None:
        def tile(start: ir.Value, values: Values) -> Values:
            _, total = self._prefix.before(self._folded(start)[-1])
            return self._running.combine(values, total)

        values = carry(self._stop, self._running.neutral(), tile, start=self._first, step=self._tile)
        with on_first_thread():
            self._keep(line, values)

    def _numbers(self, line: ir.Value) -> None:
        lines, running = self._lines, self._running
        lines.store_first(self._line, lambda: self._thread.equals(0) & self._part.equals(0))
        before = running.apply(lines.first(self._line), self._parts_before(line))

        def tile(start: ir.Value, values: Values) -> Values:
            folded = self._folded(start)
            others, total = self._prefix.before(folded[-1])
            mine = running.apply(values[0], others)
            for number, step in enumerate(folded):
                self._shared[0][self._own_place(number)] = running.apply(mine, step)
            barrier()
            for at, place in self._elements(start):
                with when(at < self._stop):
                    lines.store(self._shared[0][place], at, self._line)
            barrier()
            return [running.apply(values[0], total)]

        carry(self._stop, [before], tile, start=self._first, step=self._tile)

    def _parts_before(self, line: ir.Value) -> Values:
        """Combination of the parts before this one."""
        running = self._running
        each = parts_of(self._part, block_dim())
        first = self._thread * each

        def fold(number: ir.Value, values: Values) -> Values:
            at = first + number
            inside = at < self._part
            place = build.select(inside, at, 0)
            found = [buffer[self._place(line, place)] for buffer in self._sums]
            pairs = zip(found, running.neutral(), strict=True)
            return running.combine(values, [build.select(inside, x, y) for x, y in pairs])

        return self._prefix.before(carry(each, running.neutral(), fold))[1]

    def _folded(self, start: ir.Value) -> list[Values]:
        """Inclusive prefix over the thread's steps of a tile."""
        running, lines = self._running, self._lines
        for at, place in self._elements(start):
            found = lines.step(smaller(at, self._stop - 1), self._line)
            for value, other, buffer in zip(found, running.neutral(), self._shared, strict=True):
                buffer[place] = build.select(at < self._stop, value, other)
        barrier()
        folded: list[Values] = []
        for number in range(self._own):
            step = [buffer[self._own_place(number)] for buffer in self._shared]
            folded.append(running.combine(folded[-1], step) if folded else step)
        return folded

    def _elements(self, start: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Elements of a tile, neighbouring threads with neighbours, and their places in shared memory."""
        for number in range(self._own):
            at = block_dim() * number + self._thread
            yield start + at, _apart(at)

    def _own_place(self, number: int) -> ir.Value:
        """Position of one of the thread's own steps in shared memory."""
        return _apart(self._thread * self._own + number)


def _apart(place: ir.Value) -> ir.Value:
    """Places of which neighbouring threads' do not meet in one bank."""
    return place + place // WARP


class _Across(_Kernels):
    """Lines across memory: a thread has a part of a line, and neighbours have neighbouring lines."""

    def _plan(self, each: int) -> tuple[ir.Value, ir.Value, list[ir.Value], Sequence[ir.Value]]:
        lines = self._lines
        block = block_shape(lines.count, _THREADS)
        parts = parts_of(build.const_index(_ENOUGH), larger(lines.count, 1))
        parts = larger(smaller(parts, blocks_for(lines.steps, _STEPS, _PARTS)), 1)
        grid = [blocks_for(lines.count, block[0], GRID), parts_of(parts, block[1])]
        return parts, parts_of(lines.steps, parts), grid, block

    @staticmethod
    def _place(line: ir.Value, part: ir.Value) -> list[ir.Value]:
        return [part, line]

    def _write(self, kernel: Kernel, work: Callable[[ir.Value], None]) -> None:
        with kernel.body():
            (line, stride), (part, parts) = global_position(0), global_position(1)
            with span(self._parts, part, parts) as number:
                self._part = number
                self._first = smaller(number * self._chunk, self._lines.steps)
                self._stop = smaller(self._first + self._chunk, self._lines.steps)
                with span(self._lines.count, line, stride) as at:
                    self._line = self._lines.split(at)
                    work(at)

    def _total(self, line: ir.Value) -> None:
        neutral, combine = self._running.neutral(), self._running.combine
        self._keep(line, self._steps(neutral, lambda _, step, values: combine(values, step)))

    def _numbers(self, line: ir.Value) -> None:
        lines, running = self._lines, self._running
        lines.store_first(self._line, lambda: self._part.equals(0))

        def before(part: ir.Value, values: Values) -> Values:
            return [running.apply(values[0], [b[self._place(line, part)] for b in self._sums])]

        def number(at: ir.Value, step: Values, values: Values) -> Values:
            made = running.apply(values[0], step)
            lines.store(made, at, self._line)
            return [made]

        self._steps(carry(self._part, [lines.first(self._line)], before), number)

    def _steps(self, values: Values, step: Callable[[ir.Value, Values, Values], Values]) -> Values:
        """All steps of the part, in order; operands are read for several of them at a time."""

        def steps(places: list[ir.Value], values: Values) -> Values:
            read = [self._lines.step(place, self._line) for place in places]
            for place, operands in zip(places, read, strict=True):
                values = step(place, operands, values)
            return values

        return carry_in_groups(self._first, self._stop, _AHEAD, values, steps)


def prefix_sums(op: ir.Operation, counts: ir.Value, each: int) -> None:
    """Kernels before an operation that replace counts of 64 bits by the sums up to each along the last axis.

    A block of threads has `each` of them at least.
    """
    _Along(op, lambda: Lines(Running("add", np.dtype("int64")), [counts], counts), each)


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
            along = lies_along_rows(call)
            (_Along if along else _Across)(call.op, partial(Lines.of, call), self.each)
            call.erase()
            self.count("calls")
