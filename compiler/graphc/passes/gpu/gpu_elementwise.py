# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise work, and whatever no other pass has made a kernel of.

Fills and copies as generics, so that kernels are made of one operation only.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.walk import functions, walk
from graphc.lowering.carried import carry, span
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import Kernel, block_shape, blocks_for
from graphc.passes.gpu._nest import (
    Nest,
    Operand,
    are_aligned,
    is_whole,
    lanes_of,
    load,
    load_vector,
    store,
    store_vector,
)
from graphc.passes.gpu._notation import extract, global_position
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

NESTS = ("linalg.generic", "linalg.fill", "memref.copy")


def as_generic(op: ir.Operation) -> ir.Operation | None:
    """The generic that an operation is, or is replaced by; None if it is nothing of the kind."""
    if op.name == "linalg.generic":
        return op
    if op.name == "linalg.fill":
        value, buffer = op.operands
        return _replace(op, [], buffer, value)
    if op.name == "memref.copy":
        source, target = op.operands
        if source != target:
            return _replace(op, [source], target, None)
        op.erase()
    return None


def _replace(
    op: ir.Operation, inputs: list[ir.Value], output: ir.Value, value: ir.Value | None
) -> ir.Operation:
    axes = range(ir.MemRefType(output.type).rank)
    with ir.InsertionPoint(op), op.location:
        generic = make_nest(
            [(x, axes) for x in inputs],
            [(output, axes)],
            [False] * len(axes),
            lambda given: [given[0] if value is None else value],
        )
    op.erase()
    return generic


_ROWS, _COLUMNS = 65535, 1 << 20
# More blocks than any device runs at a time; threads stride over what is left.
_FLAT_BLOCKS = 1 << 16


@record()
class GpuElementwise(Pass):
    """Makes a kernel of each `linalg.generic`, `linalg.fill` and `memref.copy`.

    Where all operands are contiguous or single elements, threads take 16 bytes of the widest operand at a
    time, if the addresses are multiples of that (the kernel looks), and stride over the grid; what is left
    over goes element by element. Other nests have threads along the last dimension that is not reduced, and
    rows of threads along the others; each thread runs the loops of reduced dimensions itself. That is right
    for every nest and fast for those without reductions: passes for others come before.

    Attributes:
        threads: threads of a block.
    """

    threads: int = 256

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for op in [op for op in walk(function) if op.name in NESTS]:
                generic = as_generic(op)
                if generic is not None:
                    self._lower(generic)

    def _lower(self, generic: ir.Operation) -> None:
        kernel = Kernel(generic, "elementwise")
        with kernel.host():
            nest = Nest(generic)
            nest.collapse()
        if _is_flat(nest):
            _lower_flat(nest, kernel, self.threads)
            self.count("flat kernels")
        else:
            _Threads(nest, kernel).lower(self.threads)
            self.count("kernels")
        generic.erase()


def _is_flat(nest: Nest) -> bool:
    """True if all operands are contiguous along the one dimension, or single elements; results are whole."""
    if nest.rank != 1 or nest.reduction[0] or nest.indexed:
        return False
    if not all(operand.axes == [0] for operand in nest.outputs):
        return False
    return all(is_whole(operand) or 0 not in operand.axes for operand in nest.operands)


def _lower_flat(nest: Nest, kernel: Kernel, threads: int) -> None:
    """Writes the kernel and its launch."""
    vectors = [operand for operand in nest.operands if operand.axes == [0]]
    lanes = lanes_of(vectors)
    with kernel.host():
        extent = nest.extent(0)
        grid = blocks_for(extent, threads * lanes, _FLAT_BLOCKS)
    with kernel.body():
        first, stride = global_position()
        tail = first
        if lanes > 1:
            whole = extent // lanes
            count = build.select(are_aligned(vectors, lanes), whole, 0)
            with span(count, start=first, step=stride) as number:
                _vector(nest, number, lanes)
            tail = count * lanes + first
        with span(extent, start=tail, step=stride) as position:
            for operand, value in zip(nest.outputs, _values(nest, position, {}), strict=True):
                store(value, operand, [position])
    kernel.launch([grid], [threads])


def _values(nest: Nest, position: ir.Value, given: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Values of the results at a position."""
    values = dict(given)
    for operand in nest.needed(nest.yields):
        if operand.argument not in values:
            values[operand.argument] = load(operand, [position])
    return nest.compute(nest.yields, values, [position])


def _vector(nest: Nest, number: ir.Value, lanes: int) -> None:
    """One vector of each operand."""
    start = number * lanes
    loaded = {o.argument: load_vector(o, [start], lanes) for o in nest.needed(nest.yields) if o.axes == [0]}
    found: list[list[ir.Value]] = [[] for _ in nest.outputs]
    for lane in range(lanes):
        given = {argument: extract(vector, lane) for argument, vector in loaded.items()}
        for values, value in zip(found, _values(nest, start, given), strict=True):
            values.append(value)
    for operand, values in zip(nest.outputs, found, strict=True):
        store_vector(values, operand, [start])


class _Threads:
    """One thread for an element of the results."""

    def __init__(self, nest: Nest, kernel: Kernel) -> None:
        self._nest, self._kernel = nest, kernel
        axes = range(nest.rank)
        self._parallel = [a for a in axes if not nest.reduction[a] and not nest.is_unit(a)]
        self._units = [a for a in axes if not nest.reduction[a] and nest.is_unit(a)]
        self._reduced = [a for a in axes if nest.reduction[a]]

    def lower(self, threads: int) -> None:
        outer, inner = self._parallel[:-1], self._parallel[-1] if self._parallel else None
        with self._kernel.host():
            extents = {axis: self._nest.extent(axis) for axis in range(self._nest.rank)}
            columns = build.const_index(1) if inner is None else extents[inner]
            rows = build.const_index(1)
            for axis in outer:
                rows = rows * extents[axis]
            width, height = block_shape(columns, threads)
            grid = [blocks_for(columns, width, _COLUMNS), blocks_for(rows, height, _ROWS)]
        with self._kernel.body():
            (column, columns_stride), (row, rows_stride) = global_position(0), global_position(1)
            with span(rows, start=row, step=rows_stride) as number:
                indices = self._split(number, outer, extents)
                with span(columns, start=column, step=columns_stride) as line:
                    if inner is not None:
                        indices[inner] = line
                    self._element(indices, extents)
        self._kernel.launch(grid, [width, height])

    def _split(self, row: ir.Value, axes: list[int], extents: dict[int, ir.Value]) -> dict[int, ir.Value]:
        """The indices of the outer dimensions, from the number of the row."""
        indices = {axis: build.const_index(0) for axis in self._units}
        for axis in reversed(axes[1:]):
            indices[axis] = row % extents[axis]
            row = row // extents[axis]
        if axes:
            indices[axes[0]] = row
        return indices

    def _element(self, indices: dict[int, ir.Value], extents: dict[int, ir.Value]) -> None:
        nest = self._nest
        if not self._reduced:
            self._store(indices, self._compute(indices, {}), nest.outputs)
            return
        kept = [o for o in nest.outputs if not any(axis in o.axes for axis in self._reduced)]
        place = [indices.get(axis, build.const_index(0)) for axis in range(nest.rank)]
        initial = [load(operand, place) for operand in kept]

        def run(axes: list[int], values: list[ir.Value]) -> list[ir.Value]:
            if axes:

                def body(position: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                    indices[axes[0]] = position
                    return run(axes[1:], carried)

                return carry(extents[axes[0]], values, body)
            given = {operand.argument: value for operand, value in zip(kept, values, strict=True)}
            found = self._compute(indices, given)
            others = [(o, v) for o, v in zip(nest.outputs, found, strict=True) if o not in kept]
            self._store(indices, [v for _, v in others], [o for o, _ in others])
            return [v for o, v in zip(nest.outputs, found, strict=True) if o in kept]

        for operand, value in zip(kept, run(self._reduced, initial), strict=True):
            store(value, operand, place)

    def _compute(self, indices: dict[int, ir.Value], given: dict[ir.Value, ir.Value]) -> list[ir.Value]:
        nest = self._nest
        place = [indices[axis] for axis in range(nest.rank)]
        values = dict(given)
        for operand in nest.needed(nest.yields):
            if operand.argument not in values:
                values[operand.argument] = load(operand, place)
        return nest.compute(nest.yields, values, place)

    def _store(self, indices: dict[int, ir.Value], values: list[ir.Value], outputs: list[Operand]) -> None:
        place = [indices[axis] for axis in range(self._nest.rank)]
        for operand, value in zip(outputs, values, strict=True):
            store(value, operand, place)
