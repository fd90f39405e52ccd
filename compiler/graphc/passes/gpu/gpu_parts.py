# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of everything, or over rows, in two steps: blocks reduce parts, another nest combines these."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from operator import mul

from graphc.ir import build
from graphc.ir.value import flag, larger, parts_of, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.partial_reductions import Combiner, first_of
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu import _notation as of
from graphc.passes.gpu._host import host_operations
from graphc.passes.gpu._kernel import GRID_ROWS, H200, Kernel, allocate
from graphc.passes.gpu._nest import (
    Nest,
    are_aligned,
    behind_vector,
    keeps_apart,
    lanes_of,
    wide_operands,
)
from graphc.passes.gpu._notation import WARP, block_id, grid_dim, thread_id
from graphc.passes.gpu._reduce import (
    BlockReduction,
    Columns,
    Fold,
    Group,
    Share,
    Values,
    at_once,
    cost,
    each_of,
    rows_follow,
    strided,
)
from graphc.passes.gpu._rows import FEW, combiners_of, predicates_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Vectors that a thread takes before there are more blocks, and how many blocks keep a device busy.
_EACH, _BUSY = 8, 1024
# Threads that a multiprocessor has registers for.
_RESIDENT = 1024


class Parts:
    """A nest of reductions, whose blocks write what their part comes to, with a combiner for each output that
    is reduced, by its position.
    """

    def __init__(self, nest: Nest, combiners: dict[int, Combiner]) -> None:
        self.nest, self.combiners = nest, combiners
        self.accumulators = [nest.outputs[place] for place in combiners]
        self.others = [(i, o) for i, o in enumerate(nest.outputs) if i not in combiners]

    def merge(self, left: Values, right: Values) -> list[ir.Value]:
        """The value of a part and the one after it together."""
        return each_of(self.combiners.values())(left, right)

    def arguments(self) -> list[ir.Value]:
        """Arguments of the body that stand for the accumulators."""
        return [operand.argument for operand in self.accumulators]

    def neutral(self) -> list[ir.Value]:
        """Initial accumulators of a thread."""
        pairs = zip(self.combiners.values(), self.arguments(), strict=True)
        return [how.constant(argument.type) for how, argument in pairs]

    def buffers(self, kernel: Kernel, sizes: Sequence[ir.Value]) -> list[ir.Value]:
        """New arrays for the parts, one for each accumulator."""
        with kernel.host():
            return [allocate(sizes, ir.MemRefType(o.buffer.type).element_type) for o in self.accumulators]

    def combine(self, anchor: ir.Operation, buffers: Sequence[ir.Value]) -> ir.Operation:
        """A nest that reduces the arrays of parts along their last axis into the accumulators."""
        predicates = predicates_of(self.nest)
        marks = {FEW: ir.UnitAttr.get(), **first_of([predicates[place] for place in self.combiners])}
        for operand in self.accumulators:
            _bring_fill(operand.buffer, self.nest.op, anchor)
        kept = [axis for axis in range(self.nest.rank) if not self.nest.reduction[axis]]
        rank, count = len(kept) + 1, len(buffers)
        outputs = [
            (o.buffer, [None if axis is None else kept.index(axis) for axis in o.axes])
            for o in self.accumulators
        ]

        inputs = [(buffer, range(rank)) for buffer in buffers]
        with ir.InsertionPoint(anchor), anchor.location:
            reduced = [*[False] * len(kept), True]
            return make_nest(inputs, outputs, reduced, lambda x: self.merge(x[count:], x[:count]), **marks)


def reduce_in_parts(parts: Parts, *, threads: int, blocks: int) -> ir.Operation:
    """Replaces a nest, whose reduced dimensions come last, by a kernel and a nest that combines its parts,
    which is returned.

    A row, or all there is, has as many blocks as its size asks for, up to some. Blocks are far apart in no
    row: threads that are neighbours have neighbouring elements.
    """
    nest = parts.nest
    kernel = Kernel(nest.op, "whole")
    with kernel.host():
        rows = nest.reduction.index(True)
        if not rows:
            nest.collapse()
        sizes = [nest.extent(axis) for axis in range(nest.rank)]
        outer, columns = sizes[:rows], sizes[rows:]
        wide = wide_operands([nest])
        lanes = lanes_of(wide)
        # All rows together have as many blocks as keep a device busy. One block for nothing: its part is
        # what nothing comes to.
        most = smaller(parts_of(build.const_index(_BUSY), larger(product(outer), 1)), blocks)
        count = larger(smaller(parts_of(product(columns), threads * lanes * _EACH), most), 1)
        grid = [count, smaller(product(outer), GRID_ROWS)] if rows else [count]
    buffers = parts.buffers(kernel, [*outer, count])
    with kernel.body():
        behind = behind_vector(wide, lanes) if lanes > 1 else None
        reduction = BlockReduction(kernel)
        start, stride = of.global_position()

        def line(indices: list[ir.Value], row: ir.Value | None = None) -> None:
            share = Share(indices, lanes, behind, start, stride, row=row)
            values = Columns(share, columns).fold(
                parts.neutral(),
                elements(parts),
                parts.merge,
                1 if parts.others else at_once(cost(nest), lanes),
            )
            totals = reduction.together(values, parts.merge, parts.neutral())
            with of.on_first_thread():
                for total, buffer in zip(totals, buffers, strict=True):
                    buffer[*indices, block_id()] = total

        if rows:
            with span(product(outer), block_id(1), grid_dim(1)) as number:
                line(of.split(number, outer), number if rows_follow(wide, rows) else None)
        else:
            line([])
    kernel.limit(threads, _RESIDENT // threads)
    kernel.launch(grid, [threads])
    combined = parts.combine(nest.op, buffers)
    nest.op.erase()
    return combined


def elements(parts: Parts) -> Fold:
    """The accumulators after an element; what else is computed of a group is stored."""
    nest = parts.nest
    others: dict[int, list[ir.Value]] = {place: [] for place, _ in parts.others}

    def body(group: Group, lane: int, carried: list[ir.Value]) -> list[ir.Value]:
        values = dict(zip(parts.arguments(), carried, strict=True))
        for operand in nest.needed(nest.yields):
            if operand.argument not in values:
                values[operand.argument] = group.load(operand, lane)
        found = nest.compute(nest.yields, values, group.indices(lane))
        for place, operand in parts.others:
            others[place].append(found[place])
            if lane == group.lanes - 1:
                group.store(others[place], operand)
                others[place].clear()
        return [value for place, value in enumerate(found) if place not in others]

    return body


def _bring_fill(buffer: ir.Value, first: ir.Operation, anchor: ir.Operation) -> None:
    """Moves the fill of an accumulator to where its parts are combined, so that one kernel does both."""
    order = {op.operation: number for number, op in enumerate(first.block.operations)}
    users = {use.owner.operation for use in buffer.uses}
    before = [op for op in users if op in order and order[op] < order[first] and op.name != "memref.dim"]
    last = max(before, key=lambda op: order[op], default=None)
    if last is not None and _fills(last, buffer) and users <= order.keys():
        last.move_before(anchor)


def _fills(op: ir.Operation, buffer: ir.Value) -> bool:
    """True if an operation writes one value to all of an array, and does nothing else."""
    if op.name == "linalg.generic":
        return list(op.operands) == [buffer] and not Nest(op).body
    return op.name == "linalg.fill" and op.operands[1] == buffer


def in_parts(nest: Nest) -> Parts | None:
    """The nest in two steps; None if it cannot be done so."""
    combiners = combiners_of(nest, [axis for axis in range(nest.rank) if nest.reduction[axis]])
    if not combiners:
        return None
    made, whole = Parts(nest, combiners), list(range(nest.rank))
    own = {operand.buffer: operand.axes for operand in nest.outputs}
    operands = [(operand, own.get(operand.buffer) == operand.axes) for operand in nest.operands]
    is_apart = len(own) == len(nest.outputs) and all(o.axes == whole for _, o in made.others)
    return made if is_apart and keeps_apart(operands, nest.gathered, own) else None


# -- over rows --------------------------------------------------------------------------------------------

# Rows that a thread adds up before there are more blocks.
_ROWS_EACH = 16
_MOST_LANES = 4
# Blocks of a multiprocessor, for bodies of so many operations, which need few registers.
_COLUMNS_RESIDENT, _SIMPLE = 4, 8
# Where no number of blocks fills the device once, several times: so little of the last time is idle.
_TIMES = 8


class _Kernel:
    """The kernel of a nest whose dimensions are those of a batch, rows and columns."""

    def __init__(self, parts: Parts, threads: int, blocks: int) -> None:
        self._parts, self._nest = parts, parts.nest
        self._threads, self._blocks = threads, blocks
        self._kernel = Kernel(parts.nest.op, "columns")
        self._wide = [o for o in wide_operands([parts.nest]) if o in parts.nest.inputs]
        self._lanes = min(lanes_of(self._wide), _MOST_LANES)
        self._at_once = at_once(cost(parts.nest), self._lanes)

    def lower(self) -> None:
        """Replaces the nest by the kernel, its launch and a nest that combines the parts."""
        parts, nest, kernel = self._parts, self._nest, self._kernel
        *batch, rows, columns = range(nest.rank)
        with kernel.host():
            self._sizes = sizes = [nest.extent(axis) for axis in range(nest.rank)]
            groups = parts_of(sizes[columns], self._lanes)
            width, height = self._shape(groups)
            across = parts_of(groups, width)
            images = [smaller(sizes[axis], GRID_ROWS) for axis in batch]
            # Blocks beside this column's.
            others = reduce(mul, images, across)
            count = larger(smaller(parts_of(sizes[rows], height * _ROWS_EACH), self._share(others)), 1)
            grid, threads = [across, count, *images], [width, height]
            self._groups, self._width, self._height = groups, width, height
        self._buffers = parts.buffers(kernel, [*(sizes[axis] for axis in batch), sizes[columns], count])
        shape = [self._threads * self._lanes]
        self._shared = [kernel.shared(shape, operand.argument.type) for operand in parts.accumulators]
        if cost(nest) <= _SIMPLE:
            kernel.limit(self._threads, _COLUMNS_RESIDENT)
        with kernel.body():
            self._aligned = flag(False)
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
        values = self._stripe(batch, first + tx, columns, row, stride, stop)
        count = len(parts.accumulators)
        for lane in range(lanes):
            place = (ty * width + tx) * lanes + lane
            for value, buffer in zip(values[lane * count :], self._shared, strict=False):
                buffer[place] = value
        of.barrier()
        with when(ty.equals(0)):
            for lane, column in enumerate(columns):
                with when(column < self._sizes[-1]):
                    self._combine(tx, lane, batch, column, part)
        if batch:
            of.barrier()

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
        inside = [smaller(column, sizes[-1] - 1) for column in columns]
        neutral = parts.neutral() * self._lanes

        def apart(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            found: list[ir.Value] = []
            for lane, column in enumerate(inside):
                own = carried[lane * count : (lane + 1) * count]
                found += Group([*batch, number], sizes[-1:], column).fold(element, own)
            return found

        at_once = self._at_once if self._lanes == 1 else max(self._at_once // 2, 1)
        known = smaller(group, self._groups - 1)

        def together(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            place = known * self._lanes
            return Group([*batch, number], sizes[-1:], place, self._lanes).fold(element, carried)

        return either(
            self._aligned,
            [value.type for value in neutral],
            lambda: strided(stop, neutral, together, row, stride, self._at_once),
            lambda: strided(stop, neutral, apart, row, stride, at_once),
        )

    def _column(self, first: ir.Value, tx: ir.Value, lane: int) -> ir.Value:
        """A column of a thread of a block that begins at a group: neighbours are loaded together by the
        thread, or else by neighbouring threads.
        """
        beside = (first + tx) * self._lanes + lane
        return build.select(self._aligned, beside, first * self._lanes + self._width * lane + tx)

    def _share(self, others: ir.Value) -> ir.Value:
        """Number of blocks of a column, where there are so many columns of blocks."""
        others = larger(others, 1)
        once = build.const_index(self._blocks) // others
        filled = once * others > self._blocks * 15 // 16
        return build.select(filled, once, build.const_index(self._blocks * _TIMES) // others)

    def _shape(self, groups: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Threads of a block along columns and rows: few of them have no columns where these are few."""
        found = build.const_index(4)
        for least, width in itertools.pairwise((4, 8, 16, WARP)):
            found = build.select(groups > least, width, found)
        return found, build.const_index(self._threads) // found

    def _combine(
        self, tx: ir.Value, lane: int, batch: list[ir.Value], column: ir.Value, part: ir.Value
    ) -> None:
        """Combines the stripes of a column, in order, and writes its part."""

        def body(row: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            place = (row * self._width + tx) * self._lanes + lane
            return self._parts.merge(carried, [buffer[place] for buffer in self._shared])

        totals = carry(self._height, self._parts.neutral(), body)
        for total, buffer in zip(totals, self._buffers, strict=True):
            buffer[*batch, column, part] = total


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


# What one block does in less time than a launch takes.
_SMALL = 16384


@record()
class GpuParts(Pass):
    """Splits reductions of all elements of an array, and over rows (such as sums of columns), over the grid.

    Blocks reduce parts; a nest that reduces these follows, for `graphc-gpu-rows`, which also takes what is
    done to the result. The number of blocks follows from the sizes: equal calls give equal bits. Arrays that
    are contiguous and aligned are read 16 bytes at a time. Arrays of known size that one block reduces
    quickly stay as they are.

    Over rows, neighbouring threads have neighbouring columns. A block has up to 32 threads along the columns,
    each with up to four neighbouring columns, which it loads together where the addresses allow it, and as
    many rows at a time as there are threads. Each thread reduces a stripe of its columns, the block combines
    the stripes in shared memory, in order, and writes its part of each. Blocks fill the device once, all of
    them at a time: a second time that fills it by half takes as long as the first.

    Attributes:
        threads: threads of a block.
        blocks: the most blocks of a reduction of all elements.
        columns: blocks that run at a time over rows: four on each multiprocessor.
    """

    threads: int = 256
    blocks: int = 1024
    columns: int = H200.processors * _COLUMNS_RESIDENT

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for lower in (self._whole, self._columns):
            for op in host_operations(module, "linalg.generic"):
                if lower(Nest(op)):
                    self.count("kernels")

    def _whole(self, nest: Nest) -> bool:
        size = nest.static_size(range(nest.rank))
        if not nest.rank or not all(nest.reduction) or (size is not None and size <= _SMALL):
            return False
        parts = in_parts(nest)
        if parts is not None:
            reduce_in_parts(parts, threads=self.threads, blocks=self.blocks)
        return parts is not None

    def _columns(self, nest: Nest) -> bool:
        parts = in_parts(nest) if is_columns(nest) else None
        if parts is None or parts.others:
            return False
        _Kernel(parts, self.threads, self.columns).lower()
        return True
