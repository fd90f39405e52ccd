# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of operations that work on rows, each row for itself: softmax, log-sum-exp, sums and extremes of rows.

Some threads of a block have a row: a part of a warp where rows are short (a block then has several rows),
up to the whole block. What operations compute of elements is not stored but computed again where it is
read, values of a whole row stay in registers, and only what is read elsewhere is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from graphc.ir import build
from graphc.ir.value import larger, parts_of, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, span, when
from graphc.lowering.memory.layouts import is_contiguous
from graphc.lowering.partial_reductions import Combiner, combiner
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import (
    Nest,
    Operand,
    are_aligned,
    lanes_of,
    load,
    load_vector,
    store,
    store_vector,
)
from graphc.passes.gpu._notation import WARP, barrier, block_id, extract, grid_dim, loads_first, thread_id
from graphc.passes.gpu._reduce import BlockReduction, Combine
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Threads of a row that has more than so many elements: the last line that holds.
_THREADS = ((0, 1), (16, 4), (64, 8), (128, 16), (256, WARP), (1024, 128), (4096, 256), (16384, 512))
# Threads of a block with several rows, and the most blocks.
_BLOCK, _BLOCKS = 256, 1 << 20
# Operations in a step of a thread: more loads at a time are worth no more code. A function counts as many.
_STEP, _FUNCTION, _MOST_AT_ONCE = 48, 20, 4

# Gives the element of a row's array at a place of a group.
Element: TypeAlias = "Callable[[Group, int], ir.Value]"
# Gives the accumulators after an element of a group.
Fold: TypeAlias = "Callable[[Group, int, list[ir.Value]], list[ir.Value]]"


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

    @property
    def static_columns(self) -> int | None:
        """The number of elements of a row, if it is known."""
        sizes = [self.nest.static_extent(axis) for axis in self.columns]
        known = [size for size in sizes if size is not None]
        return math.prod(known) if len(known) == len(sizes) else None

    def is_row(self, operand: Operand) -> bool:
        """True if an operand has one element for each row."""
        return not any(axis in self.columns for axis in operand.axes)

    def is_own(self, operand: Operand) -> bool:
        """True if an operand has one element, or an array of all columns in their order, for each row."""
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


class Group:
    """Neighbouring elements of a row, which a thread has at a time.

    Args:
        outer: indices of the row.
        sizes: of the columns; the last one is a multiple of `lanes`.
        number: of the group, in row-major order.
        lanes: how many elements it has.
    """

    def __init__(
        self, outer: Sequence[ir.Value], sizes: Sequence[ir.Value], number: ir.Value, lanes: int = 1
    ) -> None:
        if lanes > 1:
            number = number * lanes
        self.lanes = lanes
        self._first = [*outer, *split(number, sizes)]
        self._loaded: dict[tuple[ir.Value, tuple[int | None, ...]], ir.Value] = {}

    def indices(self, lane: int) -> list[ir.Value]:
        """Of an element."""
        if not lane:
            return self._first
        *others, last = self._first
        return [*others, last + lane]

    def load(self, operand: Operand, lane: int) -> ir.Value:
        """Elements of an operand; neighbours are loaded together, once."""
        last = len(self._first) - 1
        if self.lanes == 1 or (last in operand.axes and not is_wide(operand, last)):
            return load(operand, self.indices(lane))
        key = operand.buffer, tuple(operand.axes)
        wide = last in operand.axes
        if key not in self._loaded:
            self._loaded[key] = (
                load_vector(operand, self._first, self.lanes) if wide else load(operand, self._first)
            )
        return extract(self._loaded[key], lane) if wide else self._loaded[key]

    def fold(self, body: Fold, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The accumulators after all elements, of which each has its own, one after the other."""
        count, found = len(carried) // self.lanes, list[ir.Value]()
        for lane in range(self.lanes):
            found += body(self, lane, list(carried[lane * count : (lane + 1) * count]))
        return found

    def store(self, values: Sequence[ir.Value], operand: Operand) -> None:
        """Writes what an operand gets for the elements."""
        if self.lanes > 1 and is_wide(operand, len(self._first) - 1):
            store_vector(values, operand, self._first)
            return
        for lane, value in enumerate(values):
            store(value, operand, self.indices(lane))


def is_wide(operand: Operand, last: int) -> bool:
    """True if elements with neighbouring indices of the last dimension can be loaded together."""
    return (
        bool(operand.axes)
        and operand.axes[-1] == last
        and last not in operand.axes[:-1]
        and is_contiguous(operand.buffer)
    )


class Columns:
    """The share of a thread in the elements of a row: every so manyth group, then every so manyth element.

    Args:
        outer: indices of the row.
        sizes: of its columns.
        lanes: elements of a group.
        aligned: whether memory allows groups to be loaded together.
        first, stride: the first group of the thread, and how far it is to the next one.
        active: whether the thread has a share at all; None if it has.
    """

    def __init__(
        self,
        outer: Sequence[ir.Value],
        sizes: Sequence[ir.Value],
        lanes: int,
        aligned: ir.Value | None,
        first: ir.Value,
        stride: ir.Value,
        active: ir.Value | None = None,
    ) -> None:
        self._outer, self._sizes, self._first, self._stride = outer, sizes, first, stride
        total = product(sizes)
        self._total = total if active is None else build.select(active, total, 0)
        self._lanes = lanes if sizes and aligned is not None else 1
        if self._lanes > 1:
            assert aligned is not None
            whole = (sizes[-1] % self._lanes).equals(0)
            if len(sizes) == 1 and not outer:
                # One row may have some elements more.
                whole = aligned
            self._count = build.select(whole & aligned, self._total // self._lanes, 0)

    def fold(
        self,
        neutral: Sequence[ir.Value],
        body: Fold,
        combine: Combine,
        at_once: int,
    ) -> list[ir.Value]:
        """Final accumulators of the thread.

        Args:
            neutral: what they begin with.
            body: the accumulators after an element of a group.
            combine: gives those of two.
            at_once: groups whose loads may be under way together.
        """
        values, start, count = list(neutral), self._first, len(neutral)
        if self._lanes > 1:

            def groups(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                return Group(self._outer, self._sizes, number, self._lanes).fold(body, carried)

            wide = strided(self._count, values * self._lanes, groups, start, self._stride, at_once)
            values = wide[:count]
            for lane in range(1, self._lanes):
                values = combine(values, wide[lane * count : (lane + 1) * count])
            start = self._rest()

        def elements(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return Group(self._outer, self._sizes, number).fold(body, carried)

        return strided(self._total, values, elements, start, self._stride, at_once)

    def _rest(self) -> ir.Value:
        """The first element of the thread after all groups."""
        return self._count * self._lanes + self._first

    def each(self, body: Callable[[Group], None]) -> None:
        """Does something to each group, and then to each element that is left."""
        start = self._first
        if self._lanes > 1:
            with span(self._count, start=start, step=self._stride) as place:
                body(Group(self._outer, self._sizes, place, self._lanes))
            start = self._rest()
        with span(self._total, start=start, step=self._stride) as number:
            body(Group(self._outer, self._sizes, number))


def strided(
    stop: ir.Value,
    values: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    start: ir.Value,
    stride: ir.Value,
    at_once: int,
) -> list[ir.Value]:
    """Carries values through numbers below `stop`, several in a step while there are as many."""
    values = list(values)
    while at_once > 1:
        ahead = stride * (at_once - 1)
        step = stride + ahead

        def several(
            number: ir.Value, carried: list[ir.Value], count: int = at_once, step: ir.Value = step
        ) -> list[ir.Value]:
            after, found = number + step, carried[1:]
            for _ in range(count):
                found = body(number, found)
                number = number + stride
            return [after, *found]

        last = stop - ahead
        start, *values = carry(last, [start, *values], several, start=start, step=step)
        loads_first(start.owner.regions[0].blocks[0])
        at_once //= 2
    return carry(stop, values, body, start=start, step=stride)


def wide_operands(nests: Sequence[Nest]) -> list[Operand]:
    """The operands of nests whose neighbouring elements can be loaded together."""
    return [o for nest in nests for o in nest.operands if nest.rank and is_wide(o, nest.rank - 1)]


def each_of(combiners: Iterable[Combiner]) -> Combine:
    """Combines values one by one."""
    known = list(combiners)
    return lambda left, right: [how.combine(a, b) for how, a, b in zip(known, left, right, strict=True)]


def cost(nest: Nest) -> int:
    """Operations for an element."""
    return sum(_FUNCTION if op.name.startswith(("math.", "func.")) else 1 for op in nest.body)


def at_once(operations: int, lanes: int) -> int:
    """Number of groups of a step, of so many operations for an element: a power of two.

    Groups of two have elements of 64 bits, which take twice the registers.
    """
    most = 2 if lanes == 2 else _MOST_AT_ONCE
    return 1 << (min(max(_STEP // max(operations * lanes, 1), 1), most).bit_length() - 1)


class RowKernel:
    """Writes the kernel of a run of nests.

    Args:
        kernel: where to.
        rows: dimensions of rows.
        kept: buffers that are read elsewhere.
    """

    def __init__(self, kernel: Kernel, rows: int, kept: Sequence[ir.Value]) -> None:
        self._kernel, self._rows, self._kept = kernel, rows, kept
        # What buffers hold of the row: one value, or elements that are computed when they are read.
        self._values: dict[ir.Value, ir.Value] = {}
        self._elements: dict[ir.Value, tuple[Element, list[ir.Value]]] = {}
        self._costs: dict[ir.Value, int] = {}
        self._places: dict[ir.Value, Operand] = {}

    def write(self, nests: Sequence[RowNest]) -> ir.Operation:
        """The kernel and its launch, which is returned."""
        read = _read_in_memory(nests)
        used = read | set(self._kept)
        wide = [o for o in wide_operands([row.nest for row in nests]) if o.buffer in used]
        self._lanes = lanes_of(wide)
        # What is written where it was read: all threads of the row read it before.
        self._in_place = bool(read & set(self._kept))
        with self._kernel.host():
            extents = [[row.nest.extent(axis) for axis in range(row.nest.rank)] for row in nests]
            rows = product(extents[0][: self._rows])
            single = self._in_place or not self._rows
            width, height = shape_of_blocks(longest_of(nests, extents), single=single)
            grid = smaller(parts_of(rows, height), _BLOCKS)
        with self._kernel.body():
            self._reduction = BlockReduction(self._kernel, width)
            self._aligned = are_aligned(wide, self._lanes) if self._lanes > 1 else None
            self._thread, self._width = thread_id(), width
            start = block_id() * height
            with span(rows, start=start, step=grid_dim() * height) as number:
                row, self._active = number, None
                if not single:
                    row = row + thread_id(1)
                    self._active = row < rows
                    # Threads without a row see the last one, of which they have no elements.
                    row = smaller(row, rows - 1)
                self._indices = split(row, extents[0][: self._rows])
                for nest, sizes in zip(nests, extents, strict=True):
                    self._nest(nest, sizes)
                self._store()
        return self._kernel.launch([grid], [width, height])

    def _columns(self, sizes: Sequence[ir.Value]) -> Columns:
        """The share of the thread in the row."""
        return Columns(
            self._indices, sizes, self._lanes, self._aligned, self._thread, self._width, self._active
        )

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
                self._costs[operand.buffer] = self._cost(nest)
                self._elements[operand.buffer] = element, [extents[axis] for axis in row.columns]
                self._values.pop(operand.buffer, None)
            else:
                self._values[operand.buffer] = self._element(nest, place, initial)(
                    self._zero(len(row.columns)), 0
                )
                self._elements.pop(operand.buffer, None)

    def _cost(self, nest: Nest) -> int:
        """Operations for an element, with those that are computed again."""
        return cost(nest) + sum(self._costs.get(o.buffer, 0) for o in nest.operands)

    def _zero(self, columns: int) -> Group:
        """The first element of the row of an array with so many dimensions of columns."""
        zeros = [build.const_index(0)] * columns
        return Group([*self._indices, *zeros], [], build.const_index(0))

    def _snapshot(self, row: RowNest) -> dict[ir.Value, Element]:
        """Readers of the present operands; what is written later to the same buffers changes nothing."""
        return {operand.argument: self._reader(operand, row) for operand in row.nest.operands}

    def _reader(self, operand: Operand, row: RowNest) -> Element:
        buffer = operand.buffer
        if buffer in self._values:
            value = self._values[buffer]
            return lambda group, lane: value
        if buffer in self._elements:
            element = self._elements[buffer][0]
            if row.is_row(operand):
                return lambda group, lane: element(self._zero(len(operand.axes) - self._rows), 0)
            return element

        return lambda group, lane: group.load(operand, lane)

    def _element(self, nest: Nest, place: int, readers: dict[ir.Value, Element]) -> Element:
        """The rule for the elements of an output."""
        wanted = [nest.yields[place]]
        arguments = [operand.argument for operand in nest.needed(wanted)]

        def element(group: Group, lane: int) -> ir.Value:
            values = {argument: readers[argument](group, lane) for argument in arguments}
            return nest.compute(wanted, values, group.indices(lane))[0]

        return element

    def _reduce(self, row: RowNest, extents: list[ir.Value]) -> None:
        nest, readers = row.nest, self._snapshot(row)
        places = list(row.combiners)
        accumulators = [nest.outputs[place].argument for place in places]
        wanted = [nest.yields[place] for place in places]
        read = [o.argument for o in nest.needed(wanted) if o.argument not in accumulators]
        combiners = [row.combiners[place] for place in places]

        def body(group: Group, lane: int, carried: list[ir.Value]) -> list[ir.Value]:
            values = {argument: readers[argument](group, lane) for argument in read}
            values.update(zip(accumulators, carried, strict=True))
            return nest.compute(wanted, values, group.indices(lane))

        neutral = [c.constant(value.type) for c, value in zip(combiners, accumulators, strict=True)]
        columns = self._columns([extents[axis] for axis in row.columns])
        partial = columns.fold(neutral, body, each_of(combiners), at_once(self._cost(nest), self._lanes))
        for place, how, value in zip(places, combiners, partial, strict=True):
            operand = nest.outputs[place]
            before = readers[operand.argument](self._zero(len(row.columns)), 0)
            self._values[operand.buffer] = how.combine(before, self._reduction.all(value, how))
            self._places[operand.buffer] = operand

    def _store(self) -> None:
        """Writes what is read elsewhere."""
        if self._in_place:
            barrier()
        first = self._thread.equals(0)
        if self._active is not None:
            first = first & self._active
        for buffer, value in self._values.items():
            if buffer in self._kept:
                with when(first):
                    operand = self._places[buffer]
                    zeros = [build.const_index(0)] * (len(operand.axes) - self._rows)
                    whole = Operand(buffer, list(range(len(operand.axes))), operand.argument)
                    store(value, whole, [*self._indices, *zeros])
        for buffer, (element, sizes) in self._elements.items():
            if buffer in self._kept:
                self._write(self._places[buffer], element, sizes)

    def _write(self, operand: Operand, element: Element, sizes: list[ir.Value]) -> None:
        """Writes the elements of an array."""

        def body(group: Group) -> None:
            group.store([element(group, lane) for lane in range(group.lanes)], operand)

        self._columns(sizes).each(body)


def longest_of(nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]]) -> ir.Value:
    """The number of elements of the longest row, at least 1; a constant where all sizes are known."""
    known = [row.static_columns for row in nests]
    if all(number is not None for number in known):
        return build.const_index(max([1, *(number for number in known if number is not None)]))
    longest = build.const_index(1)
    for row, sizes in zip(nests, extents, strict=True):
        longest = larger(longest, product([sizes[axis] for axis in row.columns]))
    return longest


def shape_of_blocks(longest: ir.Value, *, single: bool) -> tuple[ir.Value, ir.Value]:
    """Threads of a row, and rows of a block, for rows of at most so many elements."""
    known = build.constant_value(longest)
    width, height = build.const_index(1), build.const_index(1)
    for least, threads in _THREADS:
        if single and threads < WARP:
            threads = WARP
        rows = 1 if single else max(_BLOCK // threads, 1)
        new = build.const_index(threads), build.const_index(rows)
        if known is None:
            longer = longest > least
            new = build.select(longer, new[0], width), build.select(longer, new[1], height)
        elif known <= least:
            break
        width, height = new
    return width, build.const_index(1) if single else height


def _read_in_memory(nests: Sequence[RowNest]) -> set[ir.Value]:
    """The buffers that are read before any of the nests has written them."""
    known: set[ir.Value] = set()
    read: set[ir.Value] = set()
    for row in nests:
        needed = {operand.buffer for operand in row.nest.needed(row.nest.yields)}
        needed |= {row.nest.outputs[place].buffer for place in row.combiners}
        read |= needed - known
        known |= {operand.buffer for operand in row.nest.outputs}
    return read


def split(number: ir.Value, sizes: Sequence[ir.Value]) -> list[ir.Value]:
    """The indices that a number of an element in row-major order stands for."""
    indices: list[ir.Value] = []
    for size in reversed(sizes[1:]):
        indices.insert(0, number % size)
        number = number // size
    return [number, *indices] if sizes else []
