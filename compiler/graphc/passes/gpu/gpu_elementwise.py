# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise work, and whatever no other pass has made a kernel of."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.value import parts_of
from graphc.ir.walk import functions, walk
from graphc.lowering.calls import product
from graphc.lowering.carried import span
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._kernel import GRID_ROWS, Kernel, block_shape, blocks_for
from graphc.passes.gpu._nest import Nest, are_aligned, is_wide, lanes_of, load, store
from graphc.passes.gpu._notation import global_position, split
from graphc.passes.gpu._reduce import Group, write_elements
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

NESTS = ("linalg.generic", "linalg.fill", "memref.copy")


def as_generic(op: ir.Operation) -> ir.Operation | None:
    """The generic that an operation is, or is replaced by; None if it is nothing of the kind."""
    if op.name not in NESTS or op.name == "linalg.generic":
        return op if op.name in NESTS else None
    source, target = op.operands
    made: ir.Operation | None = None
    axes = range(ir.MemRefType(target.type).rank)
    with ir.InsertionPoint(op), op.location:
        if op.name == "linalg.fill":
            made = make_nest([], [(target, axes)], [False] * len(axes), lambda _: [source])
        elif source != target:
            made = make_nest([(source, axes)], [(target, axes)], [False] * len(axes), lambda x: x[:1])
    op.erase()
    return made


def all_generic(loop: ir.Operation) -> None:
    """Makes generics of the fills and copies in a loop."""
    for inner in [inner for inner in walk(loop) if inner.name in NESTS]:
        as_generic(inner)


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
                if (generic := as_generic(op)) is not None:
                    self._lower(generic)

    def _lower(self, generic: ir.Operation) -> None:
        """A kernel with a thread for some elements of the results, and its launch."""
        kernel = Kernel(generic, "elementwise")
        with kernel.host():
            nest = Nest(generic)
            nest.collapse()
        axes = range(nest.rank)
        reduced = {a for a in axes if nest.reduction[a]}
        parallel = [a for a in axes if not nest.reduction[a] and not nest.is_unit(a)]
        outer, inner = parallel[:-1], parallel[-1] if parallel else None
        wide = [] if reduced or inner != nest.rank - 1 else [o for o in nest.operands if inner in o.axes]
        # All that changes along the last dimension has neighbours side by side, or nothing counts as such.
        lanes = lanes_of(wide) if all(is_wide(o, nest.rank - 1) for o in wide) else 1
        with kernel.host():
            extents = [nest.extent(axis) for axis in axes]
            columns = build.const_index(1) if inner is None else extents[inner]
            groups, rows = parts_of(columns, lanes), product([extents[axis] for axis in outer])
            width, height = block_shape(groups, self.threads) if outer else (self.threads, 1)
            grid = [blocks_for(groups, width, _COLUMNS), blocks_for(rows, height, GRID_ROWS)]
        with kernel.body():
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
                if not reduced:
                    write_elements(nest, Group(place, [], build.const_index(0), lanes))
                    return
                kept = [o for o in nest.outputs if not reduced & set(o.axes)]
                initial = [load(operand, place) for operand in kept]
                for operand, value in zip(kept, nest.reduce_at(place, extents, initial), strict=True):
                    store(value, operand, place)

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
        kernel.launch(grid if outer else grid[:1], [width, height])
        self.count("wide kernels" if lanes > 1 else "kernels")
        generic.erase()
