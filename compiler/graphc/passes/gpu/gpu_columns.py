# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along columns."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry, loop
from graphc.passes.gpu._kernel import Kernel, at_most, barrier, blocks_for, position
from graphc.passes.gpu._nest import Nest, load
from graphc.passes.gpu._parts import Parts, in_parts
from graphc.passes.gpu._reduce import on_condition
from graphc.passes.gpu._shuffle import WARP
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Rows that a thread adds up before there are more blocks, and the most blocks of a column.
_EACH, _PARTS = 32, 64
_COLUMNS, _BATCH = 1 << 20, 65535


@record()
class GpuColumns(Pass):
    """Makes kernels of reductions over rows, such as sums of columns: neighbouring threads have neighbours.

    A block has 32 columns and `lanes` rows at a time. Each thread reduces a stripe of its column, the block
    combines the stripes in shared memory, in order, and writes its part of each; up to 64 blocks share a
    column. A nest that reduces the parts follows. Their number follows from the size: equal calls give equal
    bits.

    Attributes:
        lanes: rows of a block.
    """

    lanes: int = 16

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name == "linalg.generic"]:
                nest = Nest(op)
                parts = in_parts(nest) if _is_columns(nest) else None
                if parts is not None and not parts.others:
                    self._lower(parts)
                    self.count("kernels")

    def _lower(self, parts: Parts) -> None:
        nest = parts.nest
        kernel = Kernel(nest.op, "columns")
        *batch, rows, columns = range(nest.rank)
        with kernel.host():
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            each = build.const_index(self.lanes * _EACH)
            count = build.index_op("maxsi", blocks_for(sizes[rows], each, _PARTS), build.const_index(1))
            width = build.const_index(WARP)
            grid = [blocks_for(sizes[columns], width, _COLUMNS), count]
            grid += [at_most(sizes[axis], _BATCH) for axis in batch]
            threads = [width, build.const_index(self.lanes)]
        buffers = parts.buffers(kernel, [*(sizes[axis] for axis in batch), sizes[columns], count])
        shared = [kernel.shared([self.lanes, WARP], operand.argument.type) for operand in parts.accumulators]
        with kernel.body():
            start = position("block_id", 2) if batch else build.const_index(0)
            stop = sizes[batch[0]] if batch else build.const_index(1)
            step = position("grid_dim", 2) if batch else build.const_index(1)
            _, images = loop(stop, [], start=start, step=step)
            with ir.InsertionPoint(images):
                self._image(parts, sizes, [images.arguments[0]][: len(batch)], shared, buffers)
                build.create("scf.yield", [], [])
        kernel.launch(grid, threads)
        parts.combine(nest.op, buffers)
        nest.op.erase()

    def _image(
        self,
        parts: Parts,
        sizes: list[ir.Value],
        batch: list[ir.Value],
        shared: list[ir.Value],
        buffers: list[ir.Value],
    ) -> None:
        """The columns of one matrix of the batch; all threads make equally many rounds."""
        width, lanes = build.const_index(WARP), build.const_index(self.lanes)
        tx, ty = position("thread_id", 0), position("thread_id", 1)
        start = build.index_op("muli", position("block_id", 0), width)
        step = build.index_op("muli", position("grid_dim", 0), width)
        _, block = loop(sizes[-1], [], start=start, step=step)
        with ir.InsertionPoint(block):
            column = build.index_op("addi", block.arguments[0], tx)
            inside = build.compare_index(2, column, sizes[-1])
            # Threads without a column read the last one.
            last = build.index_op("subi", sizes[-1], build.const_index(1))
            place = build.index_op("minsi", column, last)
            part = position("block_id", 1)
            first = build.index_op("addi", build.index_op("muli", part, lanes), ty)
            stride = build.index_op("muli", position("grid_dim", 1), lanes)

            def body(row: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                return _element(parts, [*batch, row, place], carried)

            values = carry(sizes[-2], parts.neutral(), body, start=first, step=stride)
            for value, buffer in zip(values, shared, strict=True):
                build.create("memref.store", [], [value, buffer, ty, tx])
            barrier()
            top = build.compare_index(0, ty, build.const_index(0))
            both = build.create("arith.andi", [top.type], [top, inside]).result
            with on_condition(both):
                self._stripes(parts, shared, buffers, [*batch, column, part], tx)
            barrier()
            build.create("scf.yield", [], [])

    def _stripes(
        self,
        parts: Parts,
        shared: list[ir.Value],
        buffers: list[ir.Value],
        place: list[ir.Value],
        tx: ir.Value,
    ) -> None:
        """Combines the stripes of a column, in order, and writes its part."""
        for how, stripes, buffer in zip(parts.combiners.values(), shared, buffers, strict=True):
            kind = ir.MemRefType(buffer.type).element_type

            def stripe(lane: int, stripes: ir.Value = stripes, kind: ir.Type = kind) -> ir.Value:
                where = [build.const_index(lane), tx]
                return build.create("memref.load", [kind], [stripes, *where]).result

            total = stripe(0)
            for lane in range(1, self.lanes):
                total = how.combine(total, stripe(lane))
            build.create("memref.store", [], [total, buffer, *place])


def _is_columns(nest: Nest) -> bool:
    """Whether rows are reduced, of one matrix or of a batch, with neighbouring columns side by side."""
    with ir.InsertionPoint(nest.op), nest.op.location:
        if nest.rank > 2:
            nest.collapse()
    if nest.rank not in (2, 3) or nest.reduction != [False, True, False][3 - nest.rank :]:
        return False
    return any(operand.axes and operand.axes[-1] == nest.rank - 1 for operand in nest.inputs)


def _element(parts: Parts, indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
    """The accumulators after an element."""
    nest = parts.nest
    values = dict(zip(parts.arguments(), carried, strict=True))
    for operand in nest.needed(nest.yields):
        if operand.argument not in values:
            values[operand.argument] = load(operand, indices)
    return nest.compute(nest.yields, values, indices)
