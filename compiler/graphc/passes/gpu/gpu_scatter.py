# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at positions that an array says.

Writes at positions that an array says: which loops are such, and kernels for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS, root_of
from graphc.ir.value import as_index, converted, larger, smaller
from graphc.ir.walk import copy_with, is_inside, slice_of
from graphc.lowering.calls import product
from graphc.lowering.carried import bisected, carry, span, when
from graphc.passes import Pass
from graphc.passes.gpu._host import is_poll, polls_of, replace_loops
from graphc.passes.gpu._kernel import Kernel, allocate, blocks_for
from graphc.passes.gpu._notation import global_position
from graphc.passes.gpu._rows import split
from graphc.passes.gpu.gpu_sort import SortKernels
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

_ACCESSES = VIEWS | {"memref.load", "memref.store", "memref.dim"}
_COMPUTES = ("arith.", "math.", "complex.")
_BLOCKS = 1 << 20


@record(frozen=True)
class Scatter:
    """Loops around one store, one of whose indices is read from memory.

    Attributes:
        op: the outermost loop.
        ops: what is computed, in order.
        store: the last of these.
        row: which index of the store depends on what is read.
        old: the load of the element that is written, if it is added to.
        indices: variables and sizes of loops that tell where the index is read.
        own: those of loops that are indices of the store themselves.
    """

    op: ir.Operation
    ops: list[ir.Operation]
    store: ir.Operation
    row: ir.Value
    old: ir.Operation | None
    indices: list[tuple[ir.Value, ir.Value]]
    own: list[tuple[ir.Value, ir.Value]]

    def copy(self, wanted: ir.Value, values: Mapping[ir.Value, ir.Value]) -> ir.Value:
        """Computes a value at the insertion point, from others that are given."""
        new = dict(values)
        for op in slice_of(self.ops, [wanted], new):
            copy_with(op, new)
        return new.get(wanted, wanted)


def as_scatter(op: ir.Operation, polls: frozenset[str]) -> Scatter | None:
    """The scatter that loops are; None if they are something else."""
    found = _perfect_nest(op, polls)
    if found is None:
        return None
    loops, ops = found
    stores = [inner for inner in ops if inner.name == "memref.store"]
    if len(stores) != 1 or any(is_inside(made.operands[1], op) for made in loops):
        return None
    store = stores[0]
    _, memory, *where = store.operands
    variables: list[ir.Value] = [made.regions[0].blocks[0].arguments[0] for made in loops]
    rows = [x for x in where if x not in variables and is_inside(x, op)]
    if len(rows) != 1 or len(set(where)) < len(where) or is_inside(memory, op):
        return None
    of_row = slice_of(ops, rows)
    used = {x for inner in of_row for x in inner.operands}
    loads = [inner for inner in ops if inner.name == "memref.load"]
    same = [inner for inner in loads if root_of(inner.operands[0]) == root_of(memory)]
    if used & (set(where) - set(rows)) or not any(inner in loads for inner in of_row):
        return None
    if len(same) > 1 or any(list(x.operands) != [memory, *where] or x in of_row for x in same):
        return None
    sizes = [(variable, made.operands[1]) for variable, made in zip(variables, loops, strict=True)]
    own = [pair for pair in sizes if pair[0] in where]
    indices = [pair for pair in sizes if pair[0] not in where]
    return Scatter(op, ops, store, rows[0], same[0] if same else None, indices, own)


def _perfect_nest(
    op: ir.Operation, polls: frozenset[str]
) -> tuple[list[ir.Operation], list[ir.Operation]] | None:
    """Loops from 0 in steps of 1, one inside the other, and what is computed in them."""
    loops, ops = [op], list[ir.Operation]()
    while True:
        lower, _, step = list(loops[-1].operands)[:3]
        if len(loops[-1].results) or (build.constant_value(lower), build.constant_value(step)) != (0, 1):
            return None
        *body, _ = [inner.operation for inner in loops[-1].regions[0].blocks[0].operations]
        body = [inner for inner in body if not is_poll(inner, polls)]
        inside = [inner for inner in body if inner.name == "scf.for"]
        rest = [inner for inner in body if inner.name != "scf.for"]
        if not all(inner.name.startswith(_COMPUTES) or inner.name in _ACCESSES for inner in rest):
            return None
        if len(inside) > 1 or (inside and any(inner.name == "memref.store" for inner in rest)):
            return None
        ops += rest
        if not inside:
            return loops, ops
        loops.append(inside[0])


class ScatterKernels:
    """The kernels of a scatter: positions, their order, and the writes.

    Args:
        scatter: its loops are to be erased afterwards.
        threads: of a block.
        tile: of the sort.
    """

    def __init__(self, scatter: Scatter, threads: int, tile: int) -> None:
        self._scatter, self._threads, self._tile = scatter, threads, tile
        self._long = ir.IntegerType.get_signless(64)

    def lower(self) -> None:
        """The kernels and their launches."""
        scatter = self._scatter
        kernel = Kernel(scatter.op, "places")
        with kernel.host():
            self._sizes = [size for _, size in scatter.indices]
            self._count = product(self._sizes)
            self._places, self._order = (allocate([self._count], self._long) for _ in range(2))
        with self._each(kernel, self._count) as number:
            row = scatter.copy(scatter.row, self._at(number))
            self._places[number] = converted(row, self._long)
        kind = np.dtype("int64")
        SortKernels(scatter.op, self._places, self._order, kind, self._tile, positions=True).lower()
        kernel = Kernel(scatter.op, "scatter")
        with kernel.host():
            self._width = product([size for _, size in scatter.own])
            work = self._count * self._width
        with self._each(kernel, work) as number:
            self._write(number)

    @contextmanager
    def _each(self, kernel: Kernel, count: ir.Value) -> Iterator[ir.Value]:
        """All numbers below a count, in a kernel, which is launched."""
        with kernel.host():
            grid = blocks_for(count, self._threads, _BLOCKS)
        with kernel.body(), span(count, *global_position()) as number:
            yield number
        kernel.launch([grid], [self._threads])

    def _at(self, number: ir.Value) -> dict[ir.Value, ir.Value]:
        """The loops' variables where an index is read."""
        variables = [variable for variable, _ in self._scatter.indices]
        return dict(zip(variables, split(number, self._sizes), strict=True))

    def _write(self, number: ir.Value) -> None:
        """Applies all writes to a row at the first of them; or, where the last one wins, that one."""
        scatter = self._scatter
        at, column = number // self._width, number % self._width
        row, last = self._row(at), self._count - 1
        if scatter.old is None:
            beside, end = smaller(at + 1, last), at.equals(last)
        else:
            beside, end = larger(at - 1, 0), at.equals(0)
        with when(end | self._row(beside).differs(row)):
            self._write_row(at, row, column)

    def _write_row(self, at: ir.Value, row: ir.Value, column: ir.Value) -> None:
        scatter = self._scatter
        variables = [variable for variable, _ in scatter.own]
        indices = split(column, [size for _, size in scatter.own])
        own = dict(zip(variables, indices, strict=True))
        new, memory, *where = scatter.store.operands
        place = [row if x == scatter.row else own.get(x, x) for x in where]

        def value(at: ir.Value, given: dict[ir.Value, ir.Value]) -> ir.Value:
            return scatter.copy(new, {**own, **self._at(self._number(at)), **given})

        if scatter.old is None:
            found = value(at, {})
        else:
            old = scatter.old.results[0]
            start = memory[place]
            (found,) = carry(
                self._end(at, row), [start], lambda at, total: [value(at, {old: total[0]})], start=at
            )
        memory[place] = found

    def _end(self, at: ir.Value, row: ir.Value) -> ir.Value:
        """First write to the next row."""
        return bisected(at + 1, self._count, lambda middle: self._row(middle).equals(row))

    def _number(self, at: ir.Value) -> ir.Value:
        """The write at a place of the order."""
        return as_index(self._order[at])

    def _row(self, at: ir.Value) -> ir.Value:
        """Target row of that write."""
        return as_index(self._places[self._number(at)])


@record()
class GpuScatter(Pass):
    """Makes kernels of loops that set or increase elements at positions which are read from an array.

    Positions may repeat, and then act in order: of several numbers that are set the last one stays, and sums
    are rounded as they are added up one after the other. So the positions are sorted, which keeps equal ones
    in their order, and of those that are equal one thread does all writes: results have the bits of a loop on
    one thread. Rows are written by as many threads as they have elements, side by side. A thread finds out by
    bisection how many writes it has to do. Where most positions are equal, few threads work.

    Attributes:
        threads: threads of a block.
        tile: positions that a block sorts, a power of 2.
    """

    threads: int = 128
    tile: int = 4096

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            scatter = as_scatter(op, polls)
            if scatter is None:
                return False
            ScatterKernels(scatter, self.threads, self.tile).lower()
            op.erase()
            return True

        self.count("loops", replace_loops(module, replace))
