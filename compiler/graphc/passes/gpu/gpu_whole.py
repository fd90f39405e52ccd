# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of whole arrays.

Reductions in two steps: blocks reduce parts, and another nest combines these, in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.lifetimes import root_of
from graphc.ir.value import larger, parts_of, smaller
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import span
from graphc.lowering.partial_reductions import Combiner
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel, allocate
from graphc.passes.gpu._nest import Nest, Operand, behind_vector, lanes_of, wide_operands
from graphc.passes.gpu._notation import block_id, global_position, grid_dim, on_first_thread
from graphc.passes.gpu._reduce import FIRST, BlockReduction, Values, at_once, cost, each_of
from graphc.passes.gpu._rows import FEW, combiners_of
from graphc.passes.gpu._shares import Columns, Fold, Group, rows_follow, split
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Vectors that a thread takes before there are more blocks, how many blocks keep a device busy, and the most
# rows of a grid.
_EACH, _BUSY, _ROWS = 8, 1024, 65535
# Threads that a multiprocessor has registers for.
_RESIDENT = 1024


class Parts:
    """A nest of reductions, whose blocks write what their part comes to.

    Args:
        nest: with one combiner for each output that is reduced.
        combiners: by position of the output.
    """

    def __init__(self, nest: Nest, combiners: dict[int, Combiner]) -> None:
        self.nest, self.combiners = nest, combiners
        self.accumulators = [nest.outputs[place] for place in combiners]
        self.others = [(i, o) for i, o in enumerate(nest.outputs) if i not in combiners]

    def merge(self, left: Values, right: Values) -> list[ir.Value]:
        """What a part and the one after it come to."""
        return each_of(self.combiners.values())(left, right)

    def start(self, indices: Sequence[ir.Value]) -> list[ir.Value]:
        """What a part begins with, of the accumulators at indices of the nest."""
        return self.neutral()

    def arguments(self) -> list[ir.Value]:
        """Arguments of the body that stand for the accumulators."""
        return [operand.argument for operand in self.accumulators]

    def neutral(self) -> list[ir.Value]:
        """Initial accumulators of a thread."""
        return [
            how.constant(operand.argument.type)
            for how, operand in zip(self.combiners.values(), self.accumulators, strict=True)
        ]

    def buffers(self, kernel: Kernel, sizes: Sequence[ir.Value]) -> list[ir.Value]:
        """New arrays for the parts, one for each accumulator."""
        with kernel.host():
            return [allocate(sizes, ir.MemRefType(o.buffer.type).element_type) for o in self.accumulators]

    def combine(self, anchor: ir.Operation, buffers: Sequence[ir.Value]) -> ir.Operation:
        """A nest that reduces the arrays of parts along their last axis into the accumulators.

        The other axes are the dimensions that were not reduced.
        """
        for operand in self.accumulators:
            _bring_fill(operand.buffer, self.nest.op, anchor)
        kept = [axis for axis in range(self.nest.rank) if not self.nest.reduction[axis]]
        rank, count = len(kept) + 1, len(buffers)
        outputs = [
            (o.buffer, [None if axis is None else kept.index(axis) for axis in o.axes])
            for o in self.accumulators
        ]

        def body(given: list[ir.Value]) -> list[ir.Value]:
            return self.merge(given[count:], given[:count])

        inputs = [(buffer, range(rank)) for buffer in buffers]
        reduced = [*[False] * len(kept), True]
        with ir.InsertionPoint(anchor), anchor.location:
            marks = {FIRST: self.nest.op.attributes[FIRST]} if FIRST in self.nest.op.attributes else {}
            return make_nest(inputs, outputs, reduced, body, **{FEW: ir.UnitAttr.get()}, **marks)


def reduce_in_parts(parts: Parts, *, threads: int, blocks: int) -> ir.Operation:
    """Replaces a nest, whose reduced dimensions come last, by a kernel and a nest that combines its parts.

    A row, or all there is, has as many blocks as its size asks for. Blocks are far apart in no row: threads
    that are neighbours have neighbouring elements.

    Args:
        parts: the nest.
        threads: of a block.
        blocks: the most of a row.

    Returns:
        the nest that combines.
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
        grid = [count, smaller(product(outer), _ROWS)] if rows else [count]
    buffers = parts.buffers(kernel, [*outer, count])
    with kernel.body():
        behind = behind_vector(wide, lanes) if lanes > 1 else None
        reduction = BlockReduction(kernel)
        first, stride = global_position()

        def line(indices: list[ir.Value], row: ir.Value | None = None) -> None:
            share = Columns(indices, columns, lanes, behind, first, stride, row=row)
            values = share.fold(
                parts.neutral(),
                elements(parts),
                parts.merge,
                1 if parts.others else at_once(cost(nest), lanes),
            )
            totals = reduction.together(values, parts.merge, parts.neutral())
            with on_first_thread():
                for total, buffer in zip(totals, buffers, strict=True):
                    buffer[*indices, block_id()] = total

        if rows:
            start, step = block_id(1), grid_dim(1)
            with span(product(outer), start=start, step=step) as number:
                line(split(number, outer), number if rows_follow(wide, rows) else None)
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
    made = Parts(nest, combiners)
    return made if _keeps_apart(nest, [operand for _, operand in made.others]) else None


def _keeps_apart(nest: Nest, others: list[Operand]) -> bool:
    """True if nothing that is written element by element is read at another place or under another name."""
    whole = list(range(nest.rank))
    if any(operand.axes != whole for operand in others):
        return False
    written = {root_of(operand.buffer): operand for operand in nest.outputs}
    if len(written) < len(nest.outputs):
        return False
    if any(root_of(buffer) in written for buffer in nest.gathered):
        return False
    for operand in nest.inputs:
        same = written.get(root_of(operand.buffer))
        if same is not None and (same.buffer != operand.buffer or same.axes != operand.axes):
            return False
    return True


# What one block does in less time than a launch takes.
_SMALL = 16384


@record()
class GpuWhole(Pass):
    """Splits reductions of all elements of an array over the grid.

    Blocks reduce parts of the array and write one element each; a nest that reduces these follows, for
    `graphc-gpu-rows`, which also takes what is done to the result. The number of blocks follows from the
    size: equal calls give equal bits. Arrays that are contiguous and aligned are read 16 bytes at a time,
    with one accumulator an element of a vector. Arrays of known size that one block reduces quickly stay as
    they are.

    Attributes:
        threads: threads of a block.
        blocks: the most blocks.
    """

    threads: int = 256
    blocks: int = 1024

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                nest = Nest(op)
                if nest.rank and all(nest.reduction) and not self._is_small(nest):
                    parts = in_parts(nest)
                    if parts is not None:
                        reduce_in_parts(parts, threads=self.threads, blocks=self.blocks)
                        self.count("kernels")

    def _is_small(self, nest: Nest) -> bool:
        sizes = [nest.static_extent(axis) for axis in range(nest.rank)]
        known = [size for size in sizes if size is not None]
        return len(known) == len(sizes) and math.prod(known) <= _SMALL
