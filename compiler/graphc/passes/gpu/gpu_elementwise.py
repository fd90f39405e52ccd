# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise work, in squares where it reads arrays across, and whatever else has no kernel yet."""

from __future__ import annotations

import itertools
from functools import partial

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.lifetimes import root_of
from graphc.ir.value import flag, parts_of, smaller
from graphc.ir.walk import walk
from graphc.lowering.calls import product
from graphc.lowering.carried import either, span, when
from graphc.lowering.loops import Operand
from graphc.lowering.partial_reductions import nest as make_nest
from graphc.passes import Pass
from graphc.passes.gpu._host import host_operations
from graphc.passes.gpu._kernel import GRID_ROWS, Kernel, block_shape, blocks_for
from graphc.passes.gpu._nest import (
    Nest,
    are_aligned,
    is_wide,
    lanes_of,
    load,
    load_vector,
    store,
    wide_operands,
)
from graphc.passes.gpu._notation import barrier, block_id, extract, global_position, split, thread_id
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
        for op in host_operations(module, *NESTS):
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


# -- arrays that lie across ---------------------------------------------------------------------------------

# Threads along each side of a square, the shortest side in elements, and the most neighbours of a thread.
_THREADS, _SIDE, _MOST_LANES = 16, 32, 4
# Squares in shared memory, and their bytes: as many as every device has without being asked.
_MOST, _SHARED = 4, 48 << 10
# Blocks of a multiprocessor, each of which has a square's reads under way.
_RESIDENT = 4


@record()
class GpuTranspose(Pass):
    """Makes a kernel of elementwise nests some of whose inputs lie across the result.

    The last dimension of such an input is not that of the result, so that either reads or writes of
    neighbouring threads would be far apart. A block copies squares of 64 by 64 elements to shared memory
    (32 by 32 of 64 bits), along the rows of the input, and reads them back along the rows of the result. What
    else the nest does is done on the way. Threads read and write 16 bytes at a time where memory is
    contiguous and aligned, and rows are multiples of that; all reads of a square are under way together. All
    inputs that lie across have the same last dimension; others make the nest an elementwise one. Method:
    Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA (2009).
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for op in host_operations(module, "linalg.generic"):
            if _is_across(Nest(op)):
                self._lower(op)

    def _lower(self, op: ir.Operation) -> None:
        kernel = Kernel(op, "transpose")
        with kernel.host():
            nest = Nest(op)
            nest.collapse()
        _Writer(nest, kernel).lower()
        op.erase()
        self.count("kernels")


def _across(nest: Nest) -> list[Operand]:
    """The inputs whose last dimension is another one than that of the nest."""
    last = nest.rank - 1
    return [o for o in nest.inputs if o.axes and o.axes[-1] not in (None, last) and last in o.axes]


def _is_across(nest: Nest) -> bool:
    if nest.rank < 2 or any(nest.reduction) or nest.gathered:
        return False
    found = _across(nest)
    if not 0 < len(found) <= _MOST or len({operand.axes[-1] for operand in found}) > 1:
        return False
    if any(operand.axes != list(range(nest.rank)) for operand in nest.outputs):
        return False
    last, other = nest.rank - 1, found[0].axes[-1]
    if nest.is_unit(last) or (other is not None and nest.is_unit(other)):
        return False
    written = {root_of(operand.buffer) for operand in nest.outputs}
    return not any(root_of(operand.buffer) in written for operand in found)


class _Writer:
    """Writes the kernel of a nest."""

    def __init__(self, nest: Nest, kernel: Kernel) -> None:
        self._nest, self._kernel = nest, kernel
        self._inputs = _across(nest)
        self._last = nest.rank - 1
        self._other = next(axis for axis in [self._inputs[0].axes[-1]] if axis is not None)
        self._rest = [axis for axis in range(nest.rank) if axis not in (self._last, self._other)]
        self._wide = [*self._inputs, *wide_operands([nest])]
        own = all(is_wide(operand, self._other) for operand in self._inputs)
        self._lanes = min(lanes_of(self._wide), _MOST_LANES) if own else 1
        if not all(operand in self._wide for operand in nest.outputs):
            self._lanes = 1
        self._side = max(self._lanes * _THREADS, _SIDE)
        while (
            sum(self._side * (self._side + 1) * dtype_of(o.argument.type).itemsize for o in self._inputs)
            > _SHARED
        ):
            self._side //= 2
            self._lanes = min(self._lanes, self._side // _THREADS)

    def lower(self) -> None:
        """The kernel and its launch."""
        nest, kernel, side = self._nest, self._kernel, self._side
        with kernel.host():
            self._sizes = sizes = [nest.extent(axis) for axis in range(nest.rank)]
            squares = [
                *(sizes[axis] for axis in self._rest),
                *(parts_of(sizes[axis], side) for axis in (self._other, self._last)),
            ]
            grid = product(squares)
        # One element more in a row: threads that read a column do not meet in one bank.
        self._shared = [kernel.shared([side, side + 1], o.argument.type) for o in self._inputs]
        kernel.limit(_THREADS * _THREADS, _RESIDENT)
        with kernel.body():
            lanes, together = self._lanes, flag(False)
            if lanes > 1:
                rows = (self._sizes[self._last] | self._sizes[self._other]) % lanes
                together = rows.equals(0) & are_aligned(self._wide, lanes)
            # A loop over squares would keep the addresses of all vectors in registers.
            *rest, other, last = split(block_id(), squares)
            place = dict(zip(self._rest, rest, strict=True)), other * side, last * side
            either(together, [], lambda: self._square(*place, lanes), lambda: self._square(*place, 1))
        kernel.launch([grid], [_THREADS, _THREADS])

    def _square(self, place: dict[int, ir.Value], other: ir.Value, last: ir.Value, lanes: int) -> None:
        """A square of the result, of whose rows each thread reads and writes so many neighbours at a time."""
        along = thread_id() * lanes
        lines = [thread_id(1) + first for first in range(0, self._side, _THREADS)]
        starts = [along + first for first in range(0, self._side, _THREADS * lanes)]
        squares = []
        for operand in self._inputs:
            for line, start in itertools.product(lines, starts):
                indices = self._indices(
                    place,
                    smaller(other + start, self._sizes[self._other] - lanes),
                    smaller(last + line, self._sizes[self._last] - 1),
                )
                squares.append(load(operand, indices) if lanes == 1 else load_vector(operand, indices, lanes))
        found = iter(squares)
        for buffer in self._shared:
            for line, start in itertools.product(lines, starts):
                value = next(found)
                for lane in range(lanes):
                    buffer[line, start + lane] = value if lanes == 1 else extract(value, lane)
        barrier()
        pairs = list(zip(self._inputs, self._shared, strict=True))

        def read(line: ir.Value, start: ir.Value, lane: int) -> dict[ir.Value, ir.Value]:
            return {o.argument: buffer[start + lane, line] for o, buffer in pairs}

        for line, start in itertools.product(lines, starts):
            row, column = other + line, last + start
            with when((row < self._sizes[self._other]) & (column < self._sizes[self._last])):
                group = Group(self._indices(place, row, column), [], build.const_index(0), lanes)
                write_elements(self._nest, group, partial(read, line, start))

    def _indices(self, place: dict[int, ir.Value], other: ir.Value, last: ir.Value) -> list[ir.Value]:
        found = {**place, self._other: other, self._last: last}
        return [found[axis] for axis in range(self._nest.rank)]
