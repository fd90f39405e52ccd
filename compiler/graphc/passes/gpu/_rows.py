# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of operations that work on rows, each row for itself: softmax, log-sum-exp, sums and extremes of rows.

A row has one block of threads. What operations compute of a row's elements is not stored but computed again
where it is read, values of a whole row stay in registers, and only what is read elsewhere is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc.lowering.carried import carry, loop
from graphc.lowering.partial_reductions import Combiner, combiner
from graphc.passes.gpu._kernel import Kernel, at_most, position
from graphc.passes.gpu._nest import Nest, Operand, load, store
from graphc.passes.gpu._reduce import BlockReduction, on_first_thread
from graphc.passes.gpu._shuffle import WARP
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Threads of a block, and elements that each has of a long row before there are more threads.
_MOST_THREADS, _EACH = 512, 8
_BLOCKS = 1 << 20

# Gives the element of a row's array at indices of its columns.
Element = Callable[[Sequence[ir.Value]], ir.Value]


@record()
class RowNest:
    """A nest that does something to each row.

    Attributes:
        nest: dimensions of rows come first.
        rows: how many of them there are.
        combiners: how outputs that are reduced over the columns are combined, by position.
    """

    nest: Nest
    rows: int
    combiners: dict[int, Combiner]

    @property
    def columns(self) -> list[int]:
        """The dimensions of columns."""
        return list(range(self.rows, self.nest.rank))

    def is_row(self, operand: Operand) -> bool:
        """Whether an operand has one element for each row."""
        return not any(axis in self.columns for axis in operand.axes)

    def is_own(self, operand: Operand) -> bool:
        """Whether an operand has one element, or an array of all columns in their order, for each row."""
        if operand.axes[: self.rows] != list(range(self.rows)):
            return False
        rest = [axis for axis in operand.axes[self.rows :] if axis is not None]
        return not rest or operand.axes[self.rows :] == self.columns


def as_rows(nest: Nest, rows: int) -> RowNest | None:
    """The nest as work on rows of `rows` dimensions; None if it is not."""
    if any(nest.reduction[:rows]) or nest.rank < rows:
        return None
    columns = nest.reduction[rows:]
    if any(columns) and not all(columns):
        return None
    combiners = {}
    for place, operand in enumerate(nest.outputs):
        reduced = any(columns) and not any(axis in range(rows, nest.rank) for axis in operand.axes)
        if reduced:
            found = combiner(nest.yields[place], operand.argument)
            if found is None:
                return None
            combiners[place] = found
    arguments = [nest.outputs[place].argument for place in combiners]
    others = [value for place, value in enumerate(nest.yields) if place not in combiners]
    if any(nest.depends_on(value, arguments) for value in others):
        return None
    made = RowNest(nest, rows, combiners)
    return made if all(made.is_own(operand) for operand in nest.outputs) else None


class RowKernel:
    """Writes the kernel of a run of nests.

    Args:
        kernel: where to.
        rows: dimensions of rows.
        kept: buffers that are read elsewhere.
    """

    def __init__(self, kernel: Kernel, rows: int, kept: Sequence[ir.Value]) -> None:
        self._kernel, self._rows, self._kept = kernel, rows, kept
        self._reduction = BlockReduction(kernel)
        # What buffers hold of the row: one value, or elements that are computed when they are read.
        self._values: dict[ir.Value, ir.Value] = {}
        self._elements: dict[ir.Value, tuple[Element, list[ir.Value]]] = {}
        self._places: dict[ir.Value, Operand] = {}

    def write(self, nests: Sequence[RowNest]) -> ir.Operation:
        """The kernel and its launch, which is returned."""
        with self._kernel.host():
            extents = [[row.nest.extent(axis) for axis in range(row.nest.rank)] for row in nests]
            rows = product(extents[0][: self._rows])
            longest = build.const_index(1)
            for row, sizes in zip(nests, extents, strict=True):
                columns = product([sizes[axis] for axis in row.columns])
                longest = build.index_op("maxsi", longest, columns)
            warps = build.index_op("ceildivsi", longest, build.const_index(WARP * _EACH))
            threads = build.index_op("muli", at_most(warps, _MOST_THREADS // WARP), build.const_index(WARP))
            grid = at_most(rows, _BLOCKS)
        with self._kernel.body():
            start, stride = position("block_id"), position("grid_dim")
            _, block = loop(rows, [], start=start, step=stride)
            with ir.InsertionPoint(block):
                self._indices = split(block.arguments[0], extents[0][: self._rows])
                for row, sizes in zip(nests, extents, strict=True):
                    self._nest(row, sizes)
                self._store()
                build.create("scf.yield", [], [])
        return self._kernel.launch([grid], [threads])

    def _nest(self, row: RowNest, extents: list[ir.Value]) -> None:
        nest = row.nest
        if row.combiners:
            self._reduce(row, extents)
        initial = self._snapshot(row)
        for place, operand in enumerate(nest.outputs):
            if place in row.combiners:
                continue
            self._places[operand.buffer] = operand
            if row.columns and not all(nest.is_unit(axis) for axis in row.columns):
                element = self._element(nest, place, initial)
                self._elements[operand.buffer] = element, [extents[axis] for axis in row.columns]
                self._values.pop(operand.buffer, None)
            else:
                zeros = [build.const_index(0)] * len(row.columns)
                self._values[operand.buffer] = self._element(nest, place, initial)(zeros)
                self._elements.pop(operand.buffer, None)

    def _snapshot(self, row: RowNest) -> dict[ir.Value, Element]:
        """How to read each operand now; what is written later to the same buffers changes nothing."""
        return {operand.argument: self._reader(operand) for operand in row.nest.operands}

    def _reader(self, operand: Operand) -> Element:
        buffer, rows = operand.buffer, self._rows
        if buffer in self._values:
            value = self._values[buffer]
            return lambda columns: value
        if buffer in self._elements:
            element = self._elements[buffer][0]
            axes = operand.axes[rows:]

            def read(columns: Sequence[ir.Value]) -> ir.Value:
                zero = build.const_index(0)
                return element([zero if axis is None else columns[axis - rows] for axis in axes])

            return read
        indices = self._indices
        return lambda columns: load(operand, [*indices, *columns])

    def _element(self, nest: Nest, place: int, readers: dict[ir.Value, Element]) -> Element:
        """The rule for the elements of an output."""
        wanted = [nest.yields[place]]
        arguments = [operand.argument for operand in nest.needed(wanted)]
        indices = self._indices

        def element(columns: Sequence[ir.Value]) -> ir.Value:
            values = {argument: readers[argument](columns) for argument in arguments}
            return nest.compute(wanted, values, [*indices, *columns])[0]

        return element

    def _reduce(self, row: RowNest, extents: list[ir.Value]) -> None:
        nest, readers = row.nest, self._snapshot(row)
        places = list(row.combiners)
        accumulators = [nest.outputs[place].argument for place in places]
        wanted = [nest.yields[place] for place in places]
        read = [o.argument for o in nest.needed(wanted) if o.argument not in accumulators]
        combiners = [row.combiners[place] for place in places]
        sizes = [extents[axis] for axis in row.columns]

        def body(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            columns = split(number, sizes)
            values = {argument: readers[argument](columns) for argument in read}
            values.update(zip(accumulators, carried, strict=True))
            return nest.compute(wanted, values, [*self._indices, *columns])

        neutral = [c.constant(value.type) for c, value in zip(combiners, accumulators, strict=True)]
        thread, stride = position("thread_id"), position("block_dim")
        partial = carry(product(sizes), neutral, body, start=thread, step=stride)
        for place, how, value in zip(places, combiners, partial, strict=True):
            operand = nest.outputs[place]
            before = readers[operand.argument]([])
            self._values[operand.buffer] = how.combine(before, self._reduction.all(value, how))
            self._places[operand.buffer] = operand

    def _store(self) -> None:
        """Writes what is read elsewhere."""
        for buffer, value in self._values.items():
            if buffer in self._kept:
                with on_first_thread():
                    operand = self._places[buffer]
                    zeros = [build.const_index(0)] * (len(operand.axes) - self._rows)
                    store(
                        value,
                        Operand(buffer, list(range(len(operand.axes))), operand.argument),
                        [*self._indices, *zeros],
                    )
        for buffer, (element, sizes) in self._elements.items():
            if buffer in self._kept:
                operand = self._places[buffer]
                thread, stride = position("thread_id"), position("block_dim")
                _, block = loop(product(sizes), [], start=thread, step=stride)
                with ir.InsertionPoint(block):
                    columns = split(block.arguments[0], sizes)
                    store(element(columns), operand, [*self._indices, *columns])
                    build.create("scf.yield", [], [])


def product(sizes: Sequence[ir.Value]) -> ir.Value:
    """How many elements there are."""
    if not sizes:
        return build.const_index(1)
    total = sizes[0]
    for size in sizes[1:]:
        total = build.index_op("muli", total, size)
    return total


def split(number: ir.Value, sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices that a number of an element in row-major order stands for."""
    indices: list[ir.Value] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, build.index_op("remui", number, size))
        number = build.index_op("divui", number, size)
    return [number, *indices] if sizes else []
