# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs of operations that work on rows, each row for itself: softmax, log-sum-exp, sums and extremes of rows.

Some threads of a block have a row: a part of a warp where rows are short (a block then has several rows),
up to the whole block. They hold the row in registers where it fits (`Held`): each element is read once, all
reads of a thread are under way together, and what is computed of an element is computed once. Longer rows
are read again by each operation (`Columns`), and what is computed of their elements is computed again where
it is read. Either way values of a whole row stay in registers, and only what is read elsewhere is written.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from graphc.ir import build
from graphc.ir.value import all_of, as_index, converted, larger, literal, parts_of, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import either, span, when
from graphc.lowering.partial_reductions import Combiner, combiner
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import (
    Nest,
    Operand,
    SizeKey,
    are_aligned,
    is_wide,
    itemsize,
    lanes_of,
    load,
    load_vector,
    size_key,
    store,
    store_vector,
    wide_operands,
)
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_id,
    extract,
    thread_id,
    vector_of,
)
from graphc.passes.gpu._reduce import BlockReduction, Combine, at_once, cost, each_of, strided
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Threads that a row can have, and those of a block with several rows.
_WIDTHS = (1, 4, 8, 16, WARP, 64, 128, 256, 512)
_BLOCK = 256
# Threads that a multiprocessor has registers for: as many loads are under way, and few elements are spilled.
_RESIDENT = 1024
# Registers of a thread for elements of its row, and operations on all of them. Rows of few threads are
# shorter than these hold: neighbours read side by side.
_REGISTERS, _OPERATIONS, _SIDE_BY_SIDE = 16, 1536, 16

# A mark of nests whose rows have at most so many elements, whatever their type says.
FEW, FEW_ELEMENTS = "graphc.few", 1024

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

    @property
    def most_columns(self) -> int | None:
        """The most elements that a row can have, if that is known."""
        return FEW_ELEMENTS if FEW in self.nest.op.attributes else self.static_columns

    def column_keys(self) -> set[tuple[SizeKey, ...]]:
        """Keys that are all known to be equal to the sizes of the columns."""
        keys = {
            tuple(size_key(operand.buffer, operand.axes.index(axis)) for axis in self.columns)
            for operand in self.nest.operands
            if set(self.columns) <= set(operand.axes)
        }
        sizes = [self.nest.static_extent(axis) for axis in self.columns]
        return keys | {tuple(n for n in sizes if n is not None)} if None not in sizes else keys

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
        # What has been computed of elements, by the rule and the lane.
        self.known: dict[tuple[object, int], ir.Value] = {}

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

    def prepare(self, element: Element) -> None:
        """Nothing: elements are computed where they are written."""

    def write(self, element: Element, operand: Operand) -> None:
        """Computes and writes each group, and then each element that is left."""

        def body(group: Group) -> None:
            group.store([element(group, lane) for lane in range(group.lanes)], operand)

        start = self._first
        if self._lanes > 1:
            with span(self._count, start=start, step=self._stride) as place:
                body(Group(self._outer, self._sizes, place, self._lanes))
            start = self._rest()
        with span(self._total, start=start, step=self._stride) as number:
            body(Group(self._outer, self._sizes, number))


class Held:
    """A row in the registers of some threads, each of which has a few groups of neighbouring elements.

    Where memory does not allow groups to be loaded together, their elements are as far apart as there are
    threads, so that neighbouring threads read side by side. Threads that have fewer elements than others
    read the last ones again, and leave them out.

    Args:
        outer: indices of the row.
        sizes: of its columns; none is 0.
        lanes: elements of a group.
        aligned: whether memory allows groups to be loaded together.
        groups: of a thread.
        width: threads of the row.
        active: whether the row exists; else it stands for another one.
        is_aligned: whether the code is for memory that allows groups to be loaded together, only.
    """

    def __init__(
        self,
        outer: Sequence[ir.Value],
        sizes: Sequence[ir.Value],
        lanes: int,
        aligned: ir.Value | None,
        groups: int,
        width: ir.Value,
        active: ir.Value,
        *,
        is_aligned: bool = False,
    ) -> None:
        self._is_aligned = is_aligned
        self._outer, self._sizes, self._lanes = outer, sizes, lanes
        total, short = product(sizes), ir.IntegerType.get_signless(32)
        known = build.constant_value(total), build.constant_value(width)
        if known[0] is not None and known[1] is not None:
            groups = min(groups, -(-known[0] // (known[1] * lanes)))
        # A row that is held has few elements.
        self._total, threads, thread = (converted(x, short) for x in (total, width, thread_id()))
        self._together = None
        self._first, self._between, self._step = thread, threads, threads * lanes
        of_all = build.select(active, self._total, 0)
        if aligned is not None:
            self._together = aligned & (sizes[-1] % lanes).equals(0)
            of_all = build.select(self._together, of_all // lanes, of_all)
            self._first = build.select(self._together, thread * lanes, thread)
            self._between = build.select(self._together, 1, threads)
        # Elements of the thread: those of a number below that.
        self._count = of_all // threads + converted(thread < of_all % threads, short)
        if self._together is not None:
            self._count = build.select(self._together, self._count * lanes, self._count)
        self._groups = [_HeldGroup(self, number) for number in range(groups)]
        self._loaded: dict[tuple[ir.Value, tuple[int | None, ...]], list[ir.Value]] = {}

    @property
    def groups(self) -> list[Group]:
        """Of the thread."""
        return list(self._groups)

    def place(self, number: int, lane: int) -> ir.Value:
        """The number of an element in the row, an i32; threads have some that are behind its end."""
        return self._first + self._step * number + self._between * lane

    def _is_own(self, number: int, lane: int) -> ir.Value:
        """True if an element of a group is one of the row, which no other thread has."""
        return self._count > number * self._lanes + lane

    def indices(self, number: int, lane: int, last: int = 1) -> list[ir.Value]:
        """Of an element, at most the one that is `last` from the end."""
        place = smaller(self.place(number, lane), self._total - last)
        return [*self._outer, *split(as_index(place), self._sizes)]

    def _is_wide(self, operand: Operand) -> bool:
        rank = len(self._outer) + len(self._sizes)
        return self._together is not None and is_wide(operand, rank - 1)

    def load(self, operand: Operand, number: int, lane: int) -> ir.Value:
        """An element; all of the thread are loaded with the first one that is asked for."""
        key = operand.buffer, tuple(operand.axes)
        if key not in self._loaded:
            self._loaded[key] = self._load(operand)
        found = self._loaded[key]
        return found[number * self._lanes + lane] if len(found) > 1 else found[0]

    def _load(self, operand: Operand) -> list[ir.Value]:
        numbers, lanes = range(len(self._groups)), range(self._lanes)
        if not any(axis is not None and axis >= len(self._outer) for axis in operand.axes):
            return [load(operand, self.indices(0, 0))]

        def apart(number: int) -> list[ir.Value]:
            return [load(operand, self.indices(number, lane)) for lane in lanes]

        def together() -> list[ir.Value]:
            starts = [self.indices(number, 0, self._lanes) for number in numbers]
            return [load_vector(operand, start, self._lanes) for start in starts]

        if self._together is None or not self._is_wide(operand):
            return [value for number in numbers for value in apart(number)]
        if self._is_aligned:
            return [extract(vector, lane) for vector in together() for lane in lanes]
        # Vectors leave the branches whole: LLVM would take them apart, and both branches' loads together.
        shape = [self._lanes]
        kinds = [ir.VectorType.get(shape, operand.buffer.type.element_type)] * len(numbers)
        vectors = either(
            self._together, kinds, together, lambda: [vector_of(shape, apart(number)) for number in numbers]
        )
        return [extract(vector, lane) for vector in vectors for lane in lanes]

    def fold(
        self,
        neutral: Sequence[ir.Value],
        body: Fold,
        combine: Combine,
        at_once: int,
    ) -> list[ir.Value]:
        """Final accumulators of the thread; arguments as of `Columns`."""
        lanes = [list(neutral)] * self._lanes
        for number, group in enumerate(self._groups):
            for lane, carried in enumerate(lanes):
                own, new = self._is_own(number, lane), body(group, lane, carried)
                lanes[lane] = [build.select(own, *pair) for pair in zip(new, carried, strict=True)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [combine(*pair) for pair in zip(lanes[:half], lanes[half:], strict=True)]
        return lanes[0]

    def prepare(self, element: Element) -> None:
        """Computes all elements of the thread, before any is written."""
        for group in self._groups:
            for lane in range(self._lanes):
                element(group, lane)

    def write(self, element: Element, operand: Operand) -> None:
        """Writes the elements of the thread."""
        found = [[element(group, lane) for lane in range(self._lanes)] for group in self._groups]

        def apart() -> list[ir.Value]:
            for number, values in enumerate(found):
                for lane, value in enumerate(values):
                    with when(self._is_own(number, lane)):
                        store(value, operand, self.indices(number, lane))
            return []

        def together() -> list[ir.Value]:
            for number, values in enumerate(found):
                with when(self._is_own(number, 0)):
                    store_vector(values, operand, self.indices(number, 0))
            return []

        if self._together is None or not self._is_wide(operand):
            apart()
        else:
            either(self._together, [], together, apart)


class _HeldGroup(Group):
    """A group of a row that is held."""

    def __init__(self, row: Held, number: int) -> None:
        super().__init__([], [], build.const_index(0))
        self._row, self._number = row, number

    def indices(self, lane: int) -> list[ir.Value]:
        """Of an element, or the last one."""
        return self._row.indices(self._number, lane)

    def load(self, operand: Operand, lane: int) -> ir.Value:
        """An element, or the last one."""
        return self._row.load(operand, self._number, lane)


def held_groups(nests: Sequence[RowNest], read: set[ir.Value], lanes: int) -> int:
    """Groups of a row that a thread holds in registers: a power of two.

    Args:
        nests: what is done to the row.
        read: buffers whose elements are read in memory.
        lanes: elements of a group.
    """
    operands = [o for row in nests for o in row.nest.operands if o.buffer in read and not row.is_row(o)]
    words = [max(itemsize(o) // 4, 1) for o in {o.buffer: o for o in operands}.values()]
    operations = sum(cost(row.nest) for row in nests)
    most = min(_REGISTERS // (sum(words) or 1), _OPERATIONS // max(operations, 1), _SIDE_BY_SIDE * lanes)
    return 1 << (max(most // lanes, 1).bit_length() - 1)


class RowKernel:
    """Writes the kernel of a run of nests.

    Args:
        kernel: where to.
        rows: dimensions of rows.
        kept: buffers that are read elsewhere.
    """

    def __init__(self, kernel: Kernel, rows: int, kept: Sequence[ir.Value]) -> None:
        self._kernel, self._rows, self._kept = kernel, rows, kept

    def write(self, nests: Sequence[RowNest]) -> ir.Operation:
        """The kernel and its launch, which is returned."""
        kernel, read = self._kernel, read_in_memory(nests)
        used = read | set(self._kept)
        wide = [o for o in wide_operands([row.nest for row in nests]) if o.buffer in used]
        lanes = lanes_of(wide)
        groups = held_groups(nests, read, lanes)
        # What is written where it was read: all threads of the row read it before.
        in_place = bool(read & set(self._kept))
        with kernel.host():
            extents = [[row.nest.extent(axis) for axis in range(row.nest.rank)] for row in nests]
            rows = product(extents[0][: self._rows])
            longest = longest_of(nests, extents)
            width, height = shape_of_blocks(longest, groups * lanes)
            if not self._rows:
                # Lanes are asked for by number: the block of a single row has those of a warp.
                width, height = larger(width, WARP), build.const_index(1)
            # A loop over rows would keep the addresses of all elements in registers.
            grid = parts_of(rows, height)
            is_held = _is_held(nests, extents, longest, groups * lanes)
        with kernel.body():
            reduction = BlockReduction(kernel, width)
            aligned = are_aligned(wide, lanes) if lanes > 1 else None

            def each(groups: int) -> list[ir.Value]:
                row = block_id() * height + thread_id(1)
                # Threads without a row see the last one, of which they have no elements.
                outer = split(smaller(row, rows - 1), extents[0][: self._rows])
                share = Share(outer, lanes, aligned, groups, width, row < rows)
                Row(share, reduction, self._kept, in_place=in_place).write(nests, extents)
                return []

            known = build.constant_value(is_held)
            if known is None:
                either(is_held, [], lambda: each(groups), lambda: each(0))
            else:
                each(groups if known else 0)
        kernel.limit(_RESIDENT, 1)
        return kernel.launch([grid], [width, height])


class Share(NamedTuple):
    """The share of a thread in a row.

    Attributes:
        outer: indices of the row.
        lanes, aligned: as of `Columns`.
        groups: that a thread holds; 0 if it holds none.
        width: threads of the row.
        active: whether the row exists.
    """

    outer: Sequence[ir.Value]
    lanes: int
    aligned: ir.Value | None
    groups: int
    width: ir.Value
    active: ir.Value

    def of(self, sizes: Sequence[ir.Value]) -> Columns | Held:
        """The share in columns of some sizes."""
        outer, lanes, aligned, groups, width, active = self
        if groups and sizes:
            return Held(outer, sizes, lanes, aligned, groups, width, active)
        return Columns(outer, sizes, lanes, aligned, thread_id(), width, active)


class Row:
    """Writes what a run of nests does to one row.

    Args:
        share: of the thread.
        reduction: of all threads of the row.
        kept: buffers that are read elsewhere.
        in_place: whether any of them are read, too.
    """

    def __init__(
        self, share: Share, reduction: BlockReduction, kept: Sequence[ir.Value], *, in_place: bool
    ) -> None:
        self._share, self._reduction, self._kept, self._in_place = share, reduction, kept, in_place
        # What buffers hold of the row: one value, or elements that are computed when they are read.
        self._values: dict[ir.Value, ir.Value] = {}
        self._elements: dict[ir.Value, tuple[Element, Columns | Held]] = {}
        self._costs: dict[ir.Value, int] = {}
        self._places: dict[ir.Value, Operand] = {}
        self._columns: dict[tuple[SizeKey, ...], Columns | Held] = {}

    def write(self, nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]]) -> None:
        """All nests, and what is kept of them."""
        for row, sizes in zip(nests, extents, strict=True):
            self.nest(row, sizes)
        self.store()

    def hold(self, row: RowNest, columns: Held) -> None:
        """Says what of the columns of a nest the thread holds."""
        self._columns.update(dict.fromkeys(row.column_keys(), columns))

    def numbers(self, row: RowNest) -> dict[ir.Value, ir.Value]:
        """What a nest without columns reads of the row at present."""
        readers, first = self.readers(row), self._zero(0)
        return {operand.argument: readers[operand.argument](first, 0) for operand in row.nest.inputs}

    def nest(self, row: RowNest, sizes: Sequence[ir.Value]) -> None:
        """A nest of some sizes."""
        nest, keys = row.nest, row.column_keys()
        columns = next((found for key, found in self._columns.items() if key in keys), None)
        if columns is None:
            columns = self._share.of([sizes[axis] for axis in row.columns])
        self._columns.update(dict.fromkeys(keys, columns))
        if row.combiners:
            self._reduce(row, columns)
        initial = self.readers(row)
        for place, operand in enumerate(nest.outputs):
            if place in row.combiners:
                continue
            self._places[operand.buffer] = operand
            element = self._element(nest, place, initial)
            if row.columns and not all(nest.is_unit(axis) for axis in row.columns):
                self._costs[operand.buffer] = self._cost(nest)
                self._elements[operand.buffer] = element, columns
                self._values.pop(operand.buffer, None)
            else:
                self._values[operand.buffer] = element(self._zero(len(row.columns)), 0)
                self._elements.pop(operand.buffer, None)

    def _cost(self, nest: Nest) -> int:
        """Operations for an element, with those that are computed again."""
        return cost(nest) + sum(self._costs.get(o.buffer, 0) for o in nest.operands)

    def _zero(self, columns: int) -> Group:
        """The first element of the row of an array with so many dimensions of columns."""
        zeros = [build.const_index(0)] * columns
        return Group([*self._share.outer, *zeros], [], build.const_index(0))

    def readers(self, row: RowNest) -> dict[ir.Value, Element]:
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
                return lambda group, lane: element(self._zero(len(operand.axes) - row.rows), 0)
            return element

        return lambda group, lane: group.load(operand, lane)

    def _element(self, nest: Nest, place: int, readers: dict[ir.Value, Element]) -> Element:
        """The rule for the elements of an output, each of which is computed once a group."""
        wanted = [nest.yields[place]]
        arguments = [operand.argument for operand in nest.needed(wanted)]

        def element(group: Group, lane: int) -> ir.Value:
            if (element, lane) not in group.known:
                values = {argument: readers[argument](group, lane) for argument in arguments}
                (group.known[element, lane],) = nest.compute(wanted, values, group.indices(lane))
            return group.known[element, lane]

        return element

    def _reduce(self, row: RowNest, columns: Columns | Held) -> None:
        nest, readers = row.nest, self.readers(row)
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
        steps = at_once(self._cost(nest), self._share.lanes)
        partial = columns.fold(neutral, body, each_of(combiners), steps)
        for place, how, value in zip(places, combiners, partial, strict=True):
            operand = nest.outputs[place]
            before = readers[operand.argument](self._zero(len(row.columns)), 0)
            self._values[operand.buffer] = how.combine(before, self._reduction.all(value, how))
            self._places[operand.buffer] = operand

    def store(self) -> None:
        """Writes what is read elsewhere."""
        elements = {buffer: found for buffer, found in self._elements.items() if buffer in self._kept}
        for element, columns in elements.values():
            columns.prepare(element)
        if self._in_place:
            barrier()
        outer = self._share.outer
        for buffer, value in self._values.items():
            if buffer in self._kept:
                with when(thread_id().equals(0) & self._share.active):
                    operand = self._places[buffer]
                    zeros = [build.const_index(0)] * (len(operand.axes) - len(outer))
                    whole = Operand(buffer, list(range(len(operand.axes))), operand.argument)
                    store(value, whole, [*outer, *zeros])
        for buffer, (element, columns) in elements.items():
            columns.write(element, self._places[buffer])


def longest_of(nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]]) -> ir.Value:
    """The number of elements of the longest row, at least 1; a constant where all sizes are known."""
    known = [row.static_columns for row in nests]
    if all(number is not None for number in known):
        return build.const_index(max([1, *(number for number in known if number is not None)]))
    longest = build.const_index(1)
    for row, sizes in zip(nests, extents, strict=True):
        longest = larger(longest, product([sizes[axis] for axis in row.columns]))
    return longest


def _is_held(
    nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]], longest: ir.Value, each: int
) -> ir.Value:
    """True if threads that have so many elements each hold the longest row, and no row is empty."""
    most, bit = _WIDTHS[-1] * each, ir.IntegerType.get_signless(1)
    known = [row.most_columns for row in nests]
    conditions = [] if all(n is not None and n <= most for n in known) else [longest < most + 1]
    for row, sizes in zip(nests, extents, strict=True):
        conditions += [size > 0 for axis, size in enumerate(sizes) if axis in row.columns]
    numbers = [build.constant_value(condition) for condition in conditions]
    unknown = [c for c, number in zip(conditions, numbers, strict=True) if number is None]
    return literal(0, bit) if False in numbers else all_of(unknown) if unknown else literal(1, bit)


def shape_of_blocks(longest: ir.Value, each: int) -> tuple[ir.Value, ir.Value]:
    """Threads of a row, and rows of a block, for rows of at most so many elements.

    Args:
        longest: the number of elements.
        each: elements that a thread holds; longer rows have all threads.
    """
    known = build.constant_value(longest)
    width, height, least = build.const_index(1), build.const_index(_BLOCK), 0
    for narrow, wide in itertools.pairwise(_WIDTHS):
        least = narrow * (each if wide > 8 else min(each, _SIDE_BY_SIDE))
        new = build.const_index(wide), build.const_index(max(_BLOCK // wide, 1))
        if known is None:
            longer = longest > least
            new = build.select(longer, new[0], width), build.select(longer, new[1], height)
        elif known <= least:
            break
        width, height = new
    return width, height


def read_in_memory(nests: Sequence[RowNest]) -> set[ir.Value]:
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
