# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise work, and whatever no other pass has made a kernel of.

Fills and copies as generics, so that kernels are made of one operation only.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphc.ir import build
from graphc.ir.value import parts_of
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import span
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import GRID_ROWS, Kernel, block_shape, blocks_for
from graphc.passes.gpu._nest import Nest, Operand, are_aligned, is_wide, lanes_of, load, store
from graphc.passes.gpu._notation import global_position, split
from graphc.passes.gpu._reduce import Group, write_elements
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


# Most blocks along columns.
_COLUMNS = 1 << 16


@record()
class GpuElementwise(Pass):
    """Makes a kernel of each `linalg.generic`, `linalg.fill` and `memref.copy`.

    Threads are along the last dimension that is not reduced, and rows of threads along the others. Where all
    that changes along it lies side by side, threads take 16 bytes of the widest operand at a time, if rows
    begin at multiples of that (the kernel looks); what is left over goes element by element. Each thread runs
    the loops of reduced dimensions itself. That is right for every nest and fast for those without
    reductions: passes for others come before.

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
        wide = _Threads(nest, kernel).lower(self.threads)
        self.count("wide kernels" if wide else "kernels")
        generic.erase()


class _Threads:
    """A thread for some elements of the results."""

    def __init__(self, nest: Nest, kernel: Kernel) -> None:
        self._nest, self._kernel = nest, kernel
        axes = range(nest.rank)
        self._parallel = [a for a in axes if not nest.reduction[a] and not nest.is_unit(a)]
        self._reduced = [a for a in axes if nest.reduction[a]]

    def lower(self, threads: int) -> bool:
        """The kernel and its launch; true if threads take several elements at a time."""
        nest, outer = self._nest, self._parallel[:-1]
        inner = self._parallel[-1] if self._parallel else None
        wide = self._wide_operands(inner)
        lanes = lanes_of(wide)
        with self._kernel.host():
            extents = [nest.extent(axis) for axis in range(nest.rank)]
            columns = build.const_index(1) if inner is None else extents[inner]
            groups, rows = parts_of(columns, lanes), product([extents[axis] for axis in outer])
            width, height = block_shape(groups, threads) if outer else (threads, 1)
            grid = [blocks_for(groups, width, _COLUMNS), blocks_for(rows, height, GRID_ROWS)]
        with self._kernel.body():
            first, stride = global_position()
            count = build.const_index(0)
            if lanes > 1:
                whole = are_aligned(wide, lanes)
                if outer:
                    whole = whole & (columns % lanes).equals(0)
                count = build.select(whole, columns // lanes, 0)
            place = [build.const_index(0)] * nest.rank

            def group(number: ir.Value, lanes: int) -> None:
                if inner is not None:
                    place[inner] = number * lanes
                self._elements(Group(place, [], build.const_index(0), lanes), extents)

            def line() -> None:
                if lanes > 1:
                    with span(count, start=first, step=stride) as number:
                        group(number, lanes)
                with span(columns, start=count * lanes + first, step=stride) as number:
                    group(number, 1)

            if outer:
                row, rows_stride = global_position(1)
                with span(rows, start=row, step=rows_stride) as number:
                    indices = split(number, [extents[axis] for axis in outer])
                    for axis, index in zip(outer, indices, strict=True):
                        place[axis] = index
                    line()
            else:
                line()
        self._kernel.launch(grid if outer else grid[:1], [width, height])
        return lanes > 1

    def _wide_operands(self, inner: int | None) -> list[Operand]:
        """Operands that change along the last dimension, if all their neighbours lie side by side."""
        nest = self._nest
        if self._reduced or inner != nest.rank - 1:
            return []
        found = [operand for operand in nest.operands if inner in operand.axes]
        return found if all(is_wide(operand, inner) for operand in found) else []

    def _elements(self, group: Group, extents: Sequence[ir.Value]) -> None:
        """Neighbouring elements of the results, or one with its reductions."""
        if self._reduced:
            self._reduction(group.indices(0), extents)
        else:
            write_elements(self._nest, group)

    def _reduction(self, place: list[ir.Value], extents: Sequence[ir.Value]) -> None:
        nest = self._nest
        kept = [o for o in nest.outputs if not any(axis in o.axes for axis in self._reduced)]
        initial = [load(operand, place) for operand in kept]
        for operand, value in zip(kept, nest.reduce_at(place, extents, initial), strict=True):
            store(value, operand, place)
