# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of whole arrays."""

from __future__ import annotations

import math

from graphc.ir import build
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry
from graphc.passes.gpu import _flat
from graphc.passes.gpu._kernel import Kernel, blocks_for, global_position, position
from graphc.passes.gpu._nest import Nest, load, store
from graphc.passes.gpu._parts import Parts, in_parts
from graphc.passes.gpu._reduce import BlockReduction, on_first_thread
from graphc.passes.gpu._rows import product, split
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What one block does in less time than a launch takes.
_SMALL = 16384
# Vectors that a thread takes before there are more blocks.
_EACH = 8


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
                        self._lower(parts)
                        self.count("kernels")

    def _is_small(self, nest: Nest) -> bool:
        sizes = [nest.static_extent(axis) for axis in range(nest.rank)]
        known = [size for size in sizes if size is not None]
        return len(known) == len(sizes) and math.prod(known) <= _SMALL

    def _lower(self, parts: Parts) -> None:
        nest = parts.nest
        kernel = Kernel(nest.op, "whole")
        with kernel.host():
            nest.collapse()
            sizes = [nest.extent(axis) for axis in range(nest.rank)]
            extent = product(sizes)
            lanes = _flat.lanes_of(nest) if _is_flat(nest) and not parts.others else 1
            each = build.const_index(self.threads * lanes * _EACH)
            # One block for nothing: its part is what nothing comes to.
            grid = build.index_op("maxsi", blocks_for(extent, each, self.blocks), build.const_index(1))
            width = build.const_index(self.threads)
        buffers = parts.buffers(kernel, [grid])
        with kernel.body():
            first, stride = global_position()
            values, start = parts.neutral(), first
            if lanes > 1:
                values, start = _vectors(parts, extent, lanes, first, stride)

            def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                return _element(parts, split(number, sizes), carried)

            values = carry(extent, values, body, start=start, step=stride)
            reduction = BlockReduction(kernel)
            totals = [
                reduction.all(value, how) for value, how in zip(values, parts.combiners.values(), strict=True)
            ]
            with on_first_thread():
                block = position("block_id")
                for total, buffer in zip(totals, buffers, strict=True):
                    build.create("memref.store", [], [total, buffer, block])
        kernel.launch([grid], [width])
        parts.combine(nest.op, buffers)
        nest.op.erase()


def _is_flat(nest: Nest) -> bool:
    return (
        nest.rank == 1
        and not nest.indexed
        and all(_flat.is_whole(operand) or 0 not in operand.axes for operand in nest.operands)
    )


def _element(parts: Parts, indices: list[ir.Value], carried: list[ir.Value]) -> list[ir.Value]:
    """The accumulators after an element; what else is computed of it is stored."""
    nest = parts.nest
    values = dict(zip(parts.arguments(), carried, strict=True))
    for operand in nest.needed(nest.yields):
        if operand.argument not in values:
            values[operand.argument] = load(operand, indices)
    found = nest.compute(nest.yields, values, indices)
    for place, operand in parts.others:
        store(found[place], operand, indices)
    return [found[place] for place in parts.combiners]


def _vectors(
    parts: Parts, extent: ir.Value, lanes: int, first: ir.Value, stride: ir.Value
) -> tuple[list[ir.Value], ir.Value]:
    """The accumulators after all whole vectors, and where the thread goes on."""
    nest, arguments = parts.nest, parts.arguments()
    count = _flat.vectors(nest, extent, lanes)
    needed = [o for o in nest.needed(nest.yields) if o.argument not in arguments]

    def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        start = build.index_op("muli", number, build.const_index(lanes))
        loaded = {
            o.argument: _flat.load_vector(o, start, lanes) if o.axes == [0] else load(o, []) for o in needed
        }
        found = []
        for lane in range(lanes):
            values = {
                o.argument: _flat.extract(loaded[o.argument], lane) if o.axes == [0] else loaded[o.argument]
                for o in needed
            }
            own = carried[lane * len(arguments) : (lane + 1) * len(arguments)]
            values.update(zip(arguments, own, strict=True))
            found += nest.compute(nest.yields, values, [start])
        return found

    carried = carry(count, parts.neutral() * lanes, body, start=first, step=stride)
    values = carried[: len(arguments)]
    for lane in range(1, lanes):
        own = carried[lane * len(arguments) : (lane + 1) * len(arguments)]
        pairs = zip(parts.combiners.values(), values, own, strict=True)
        values = [how.combine(a, b) for how, a, b in pairs]
    done = build.index_op("muli", count, build.const_index(lanes))
    return values, build.index_op("addi", done, first)
