# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import larger, parts_of, smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Nest, are_aligned, lanes_of, load, wide_operands
from graphc.passes.gpu._notation import WARP, barrier, block_id, grid_dim, thread_id
from graphc.passes.gpu._reduce import Values, at_once, cost, strided
from graphc.passes.gpu._shares import Group
from graphc.passes.gpu.gpu_whole import Parts, elements, in_parts
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Rows that a thread adds up before there are more blocks.
_EACH = 16
_BATCH, _MOST_LANES = 65535, 4
# Rows of a thread that are under way where their order counts.
_ROWS_AT_ONCE = 4
# Blocks of a multiprocessor, for bodies of so many operations, which need few registers.
_RESIDENT, _SIMPLE = 4, 8
# Where no number of blocks fills the device once, several times: so little of the last time is idle.
_TIMES = 8


@record()
class GpuColumns(Pass):
    """Makes kernels of reductions over rows, such as sums of columns: neighbouring threads have neighbours.

    A block has up to 32 threads along the columns, each with up to four neighbouring columns, which it loads
    together where the addresses allow it, and as many rows at a time as there are threads. Each thread
    reduces a stripe of its columns, the block combines the stripes in shared memory, in order, and writes its
    part of each. Blocks fill the device once, all of them at a time: a second time that fills it by half
    takes as long as the first. A nest that reduces the parts follows. Their number follows from the sizes:
    equal calls give equal bits.

    Attributes:
        threads: threads of a block.
        blocks: that run at a time: four on each of 132 multiprocessors.
    """

    threads: int = 256
    blocks: int = 132 * _RESIDENT

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                nest = Nest(op)
                parts = (in_parts(nest) or _positions(nest)) if is_columns(nest) else None
                if parts is not None and not parts.others:
                    _Kernel(parts, self).lower()
                    self.count("kernels")


class _Kernel:
    """The kernel of a nest whose dimensions are those of a batch, rows and columns."""

    def __init__(self, parts: Parts, options: GpuColumns) -> None:
        self._parts, self._nest = parts, parts.nest
        self._threads, self._blocks = options.threads, options.blocks
        self._kernel = Kernel(parts.nest.op, "columns")
        self._wide = [o for o in wide_operands([parts.nest]) if o in parts.nest.inputs]
        self._lanes = min(lanes_of(self._wide), _MOST_LANES)
        # Rows of a thread follow each other where their order counts.
        self._in_order = isinstance(parts, _Positions)
        self._at_once = _ROWS_AT_ONCE if self._in_order else at_once(cost(parts.nest), self._lanes)

    def lower(self) -> None:
        """Replaces the nest by the kernel, its launch and a nest that combines the parts."""
        parts, nest, kernel = self._parts, self._nest, self._kernel
        *batch, rows, columns = range(nest.rank)
        with kernel.host():
            self._sizes = sizes = [nest.extent(axis) for axis in range(nest.rank)]
            groups = parts_of(sizes[columns], self._lanes)
            width, height = self._shape(groups, nest.static_extent(columns))
            across = parts_of(groups, width)
            images = [smaller(sizes[axis], _BATCH) for axis in batch]
            # Blocks beside this column's.
            others = reduce(lambda a, b: a * b, images, across)
            count = larger(smaller(parts_of(sizes[rows], height * _EACH), self._share(others)), 1)
            grid, threads = [across, count, *images], [width, height]
            self._groups, self._width, self._height = groups, width, height
        self._buffers = parts.buffers(kernel, [*(sizes[axis] for axis in batch), sizes[columns], count])
        shape = [self._threads * self._lanes]
        self._shared = [kernel.shared(shape, operand.argument.type) for operand in parts.accumulators]
        if cost(nest) <= _SIMPLE or self._in_order:
            kernel.limit(self._threads, _RESIDENT)
        with kernel.body():
            self._aligned = None
            if self._lanes > 1:
                rest = sizes[columns] % self._lanes
                self._aligned = rest.equals(0) & are_aligned(self._wide, self._lanes)
            if batch:
                with span(sizes[batch[0]], block_id(2), grid_dim(2)) as number:
                    self._image([number])
            else:
                self._image([])
        kernel.launch(grid, threads)
        parts.combine(nest.op, self._buffers)
        nest.op.erase()

    def _image(self, batch: list[ir.Value]) -> None:
        """The columns of one matrix of the batch."""
        parts, lanes = self._parts, self._lanes
        tx, ty = thread_id(), thread_id(1)
        first, part, width, height = block_id() * self._width, block_id(1), self._width, self._height
        columns = [self._column(first, tx, lane) for lane in range(lanes)]
        row, stride, stop = part * height + ty, grid_dim(1) * height, self._sizes[-2]
        if self._in_order:
            length = parts_of(stop, stride)
            row, stride, stop = row * length, build.const_index(1), smaller((row + 1) * length, stop)
        values = self._stripe(batch, first + tx, columns, row, stride, stop)
        count = len(parts.accumulators)
        for lane in range(lanes):
            place = self._place(ty * width + tx, lane)
            for value, buffer in zip(values[lane * count :], self._shared, strict=False):
                buffer[place] = value
        barrier()
        with when(ty.equals(0)):
            for lane, column in enumerate(columns):
                with when(column < self._sizes[-1]):
                    self._combine(tx, lane, batch, column, part)
        if batch:
            barrier()

    def _stripe(
        self,
        batch: list[ir.Value],
        group: ir.Value,
        columns: list[ir.Value],
        row: ir.Value,
        stride: ir.Value,
        stop: ir.Value,
    ) -> list[ir.Value]:
        """The accumulators of a thread for each of its columns."""
        parts, sizes, element = self._parts, self._sizes, elements(self._parts)
        count = len(parts.accumulators)

        # Threads without columns read the last ones.
        def last(size: ir.Value, number: ir.Value) -> ir.Value:
            return smaller(number, size - 1)

        inside = [last(sizes[-1], column) for column in columns]
        neutral = [value for column in inside for value in parts.start([*batch, row, column])]

        def apart(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            found: list[ir.Value] = []
            for lane, column in enumerate(inside):
                own = carried[lane * count : (lane + 1) * count]
                found += Group([*batch, number], sizes[-1:], column).fold(element, own)
            return found

        if self._aligned is None:
            return strided(stop, neutral, apart, row, stride, self._at_once)
        known = last(self._groups, group)

        def together(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return Group([*batch, number], sizes[-1:], known * self._lanes, self._lanes).fold(
                element, carried
            )

        return either(
            self._aligned,
            [value.type for value in neutral],
            lambda: strided(stop, neutral, together, row, stride, self._at_once),
            lambda: strided(stop, neutral, apart, row, stride, max(self._at_once // 2, 1)),
        )

    def _column(self, first: ir.Value, tx: ir.Value, lane: int) -> ir.Value:
        """A column of a thread of a block that begins at a group: neighbours are loaded together by the
        thread, or else by neighbouring threads.
        """
        beside = (first + tx) * self._lanes + lane
        if self._aligned is None or self._lanes == 1:
            return beside
        return build.select(self._aligned, beside, first * self._lanes + self._width * lane + tx)

    def _share(self, others: ir.Value) -> ir.Value:
        """Number of blocks of a column, where there are so many columns of blocks."""
        others = larger(others, 1)
        once = build.const_index(self._blocks) // others
        filled = once * others > self._blocks * 15 // 16
        return build.select(filled, once, build.const_index(self._blocks * _TIMES) // others)

    def _shape(self, groups: ir.Value, known: int | None) -> tuple[ir.Value, ir.Value]:
        """Threads of a block along columns and rows: few of them have no columns where these are few."""
        widths = [4, 8, 16, WARP]
        if known is not None:
            needed = -(-known // self._lanes)
            width = next((width for width in widths if width >= needed), WARP)
            return build.const_index(width), build.const_index(self._threads // width)
        found = build.const_index(widths[0])
        for least, width in itertools.pairwise(widths):
            found = build.select(groups > least, width, found)
        return found, build.const_index(self._threads) // found

    def _place(self, thread: ir.Value, lane: int) -> ir.Value:
        """Position of the stripe of a thread's column."""
        return thread * self._lanes + lane

    def _combine(
        self, tx: ir.Value, lane: int, batch: list[ir.Value], column: ir.Value, part: ir.Value
    ) -> None:
        """Combines the stripes of a column, in order, and writes its part."""

        def body(row: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            place = self._place(row * self._width + tx, lane)
            return self._parts.merge(carried, [buffer[place] for buffer in self._shared])

        totals = carry(self._height, self._parts.start([*batch, part, column]), body)
        for total, buffer in zip(totals, self._buffers, strict=True):
            buffer[*batch, column, part] = total


class _Positions(Parts):
    """The reduction of a nest that finds extremes and where they are: the first one wins, as does NaN.

    Args:
        nest: yields `select(wins, value, accumulator)` and the same of the position and its accumulator.
        pairs: for each extreme, its output, its element, and those of its position.
    """

    def __init__(self, nest: Nest, pairs: Sequence[_Pair]) -> None:
        super().__init__(nest, {})
        self.accumulators, self.others, self._pairs = nest.outputs, [], pairs

    def start(self, indices: Sequence[ir.Value]) -> list[ir.Value]:
        """What the accumulators hold: some element, which changes nothing where it comes again."""
        return [load(operand, indices) for operand in self.accumulators]

    def merge(self, left: Values, right: Values) -> list[ir.Value]:
        """The later part's extremes where they win as an element would."""
        found, zeros = list(left), [build.const_index(0)] * self.nest.rank
        for top, value, where, place in self._pairs:
            known = dict(zip(self.arguments(), left, strict=True)) | {value: right[top], place: right[where]}
            wanted = [self.nest.yields[top], self.nest.yields[where]]
            found[top], found[where] = self.nest.compute(wanted, known, zeros)
        return found

    def combine(self, anchor: ir.Operation, buffers: Sequence[ir.Value]) -> ir.Operation:
        """A nest in which a thread for each column goes through the parts, in order."""
        kept = [axis for axis in range(self.nest.rank) if not self.nest.reduction[axis]]
        rank, count = len(kept) + 1, len(buffers)
        outputs = [
            (o.buffer, [None if axis is None else kept.index(axis) for axis in o.axes])
            for o in self.accumulators
        ]
        inputs = [(buffer, range(rank)) for buffer in buffers]
        with ir.InsertionPoint(anchor), anchor.location:
            return make_nest(
                inputs,
                outputs,
                [*[False] * len(kept), True],
                lambda given: self.merge(given[count:], given[:count]),
            )


# An output and its element, that of the position and the position.
_Pair: TypeAlias = "tuple[int, ir.Value, int, ir.Value]"


def _positions(nest: Nest) -> _Positions | None:
    """The nest as one that finds extremes and their positions; None if it is another one."""
    pairs: list[_Pair] = []
    places = [number for number, value in enumerate(nest.yields) if _is_place(value)]
    for top, (value, operand) in enumerate(zip(nest.yields, nest.outputs, strict=True)):
        where = [number for number in places if _says(nest.yields[number].owner, value, operand.argument)]
        if len(where) == 1 and top not in places:
            taken = list(nest.yields[where[0]].owner.operands)
            if taken[2] == nest.outputs[where[0]].argument:
                pairs.append((top, _element(value, operand.argument), where[0], taken[1]))
    is_all = 2 * len(pairs) == len(nest.outputs) > 0
    return _Positions(nest, pairs) if is_all and not nest.gathered else None


def _element(value: ir.Value, old: ir.Value) -> ir.Value:
    """What an accumulator gets if it is not what it was."""
    operands = list(value.owner.operands)
    return operands[1] if value.owner.name == "arith.select" else next(x for x in operands if x != old)


def _says(place: ir.Operation, value: ir.Value, old: ir.Value) -> bool:
    """True if a position is chosen just when an accumulator gets another element."""
    made, wins = value.owner, place.operands[0]
    if isinstance(made, ir.Block):
        return False
    if made.name == "arith.select":
        chosen = list(made.operands)
        return bool(chosen[0] == wins and chosen[2] == old) and _is_extreme(wins, chosen[1:])
    predicate, compare = _EXTREMES.get(made.name), wins.owner
    if predicate is None or isinstance(compare, ir.Block) or compare.name != "arith.cmpi":
        return False
    known = ir.IntegerAttr(compare.attributes["predicate"]).value
    return bool(
        known == predicate and list(compare.operands) == list(made.operands) and made.operands[1] == old
    )


def _is_place(value: ir.Value) -> bool:
    """True if a position in the array is chosen, or stays."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.select":
        return False
    made = value.owner.operands[1].owner
    if isinstance(made, ir.Block) or made.name != "arith.index_cast":
        return False
    index = made.operands[0].owner
    return not isinstance(index, ir.Block) and index.name == "linalg.index"


def _is_extreme(wins: ir.Value, numbers: Sequence[ir.Value]) -> bool:
    """True if two numbers alone say which of them wins, as the larger, the smaller, or NaN."""
    seen, left = set(numbers), [wins]
    while left:
        made = left.pop()
        if made in seen:
            continue
        seen.add(made)
        if isinstance(made.owner, ir.Block) or made.owner.name not in _COMPARES:
            return False
        allowed = _COMPARES[made.owner.name]
        if allowed and ir.IntegerAttr(made.owner.attributes["predicate"]).value not in allowed:
            return False
        left += made.owner.operands
    return True


# The comparison by which an integer is the larger or the smaller one.
_EXTREMES = {"arith.minsi": 2, "arith.maxsi": 4, "arith.minui": 6, "arith.maxui": 8}
# What says whether an element wins, with its predicates: more, less, and unordered.
_COMPARES: dict[str, tuple[int, ...]] = {
    "arith.cmpf": (2, 4, 9, 11, 14),
    "arith.cmpi": (2, 4, 6, 8),
    "arith.ori": (),
    "arith.andi": (),
    "arith.xori": (),
    "arith.constant": (),
}


def is_columns(nest: Nest) -> bool:
    """True if rows are reduced, of one matrix or of a batch, with neighbouring columns side by side."""
    with ir.InsertionPoint(nest.op), nest.op.location:
        if nest.rank > 2:
            nest.collapse()
    if nest.rank >= 2 and nest.reduction[-2:] == [False, True] and not _is_repeated(nest.op):
        # A transpose: what is reduced is the row of each matrix that is read. A step of a loop, which is
        # captured to be replayed, allocates nothing: there a thread adds up a column.
        turned = [nest.rank - 1, nest.rank - 2]
        both = [o for o in nest.inputs if set(turned) <= set(o.axes)]
        if both and all(o.axes[-2:] == turned for o in both):
            nest.interchange(nest.rank - 2)
    if nest.rank not in (2, 3) or nest.reduction != [False, True, False][3 - nest.rank :]:
        return False
    return any(operand.axes and operand.axes[-1] == nest.rank - 1 for operand in nest.inputs)


def _is_repeated(op: ir.Operation) -> bool:
    """True if an operation stands in a loop."""
    while op.name != "func.func":
        op = op.parent.operation
        if op.name in ("scf.for", "scf.while", "scf.parallel"):
            return True
    return False
