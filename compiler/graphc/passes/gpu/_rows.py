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
from collections.abc import Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.value import all_of, larger, literal, parts_of, smaller
from graphc.ir.walk import definition
from graphc.lowering.calls import product
from graphc.lowering.carried import either, when
from graphc.lowering.loops import Operand
from graphc.lowering.partial_reductions import FIRST, Combiner, combiner
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import (
    Nest,
    SizeKey,
    behind_vector,
    lanes_of,
    size_key,
    store,
    whole,
    wide_operands,
)
from graphc.passes.gpu._notation import WARP, barrier, block_id, itemsize, split, thread_id
from graphc.passes.gpu._reduce import (
    BlockReduction,
    Columns,
    Element,
    First,
    Group,
    Held,
    Share,
    at_once,
    cost,
    each_of,
    first,
    rows_follow,
)
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Threads that a row can have, and those of a block with several rows.
_WIDTHS = (1, 4, 8, 16, WARP, 64, 128, 256, 512)
_BLOCK = 256
# Threads that a multiprocessor has registers for: as many loads are under way, and few elements are spilled.
_RESIDENT = 768
# Registers of a thread for elements of its row, and operations on all of them. Rows of few threads are
# shorter than these hold: neighbours read side by side.
_REGISTERS, _OPERATIONS, _SIDE_BY_SIDE = 32, 1536, 16

# A mark of nests whose rows have at most so many elements, whatever their type says.
FEW, FEW_ELEMENTS = "graphc.few", 1024


@record()
class RowNest:
    """A nest that does something to each row, whose dimensions come first; outputs that are reduced over the
    columns have combiners, by position.
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
        return self.nest.static_size(self.columns)

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
    columns = nest.reduction[rows:]
    if any(nest.reduction[:rows]) or nest.rank < rows or (any(columns) and not all(columns)):
        return None
    combiners = combiners_of(nest, range(rows, nest.rank)) if any(columns) else {}
    if combiners is None:
        return None
    made = RowNest(nest, rows, combiners)
    return made if all(made.is_own(operand) for operand in nest.outputs) else None


def combiners_of(nest: Nest, reduced: Sequence[int]) -> dict[int, Combiner] | None:
    """Combiners of the outputs of a nest without some dimensions, by position; None if one is not known, or
    anything else that it computes depends on them.
    """
    places = [place for place, o in enumerate(nest.outputs) if not any(axis in reduced for axis in o.axes)]
    arguments = [nest.outputs[place].argument for place in places]
    others = [value for place, value in enumerate(nest.yields) if place not in places]
    if any(nest.depends_on(value, arguments) for value in others):
        return None
    known: dict[int, Combiner] = {}
    for place, argument in zip(places, arguments, strict=True):
        if name := predicates_of(nest)[place]:
            known |= enumerate(first(name, argument.type), place)
        elif place not in known and (how := combiner(nest.yields[place], argument)) is not None:
            known[place] = how
    return known if len(known) == len(places) else None


def predicates_of(nest: Nest) -> list[str]:
    """By which elements win, of the outputs that are extremes with their positions after them; else empty."""
    if FIRST not in nest.op.attributes:
        return [""] * len(nest.outputs)
    return [ir.StringAttr(name).value for name in ir.ArrayAttr(nest.op.attributes[FIRST])]


def held_groups(nests: Sequence[RowNest], read: set[ir.Value], lanes: int) -> int:
    """Groups of so many elements of a row that a thread holds in registers, of buffers that are read in
    memory: a power of two.
    """
    operands = [o for row in nests for o in row.nest.operands if o.buffer in read and not row.is_row(o)]
    words = [max(itemsize(buffer) // 4, 1) for buffer in {o.buffer for o in operands}]
    operations = sum(cost(row.nest) for row in nests)
    most = min(_REGISTERS // (sum(words) or 1), _OPERATIONS // max(operations, 1), _SIDE_BY_SIDE * lanes)
    return 1 << (max(most // lanes, 1).bit_length() - 1)


class RowKernel:
    """Writes the kernel of a run of nests, on rows of some dimensions; `kept` are buffers that are read
    elsewhere.
    """

    def __init__(self, kernel: Kernel, rows: int, kept: Sequence[ir.Value]) -> None:
        self._kernel, self._rows, self._kept = kernel, rows, kept

    def write(self, nests: Sequence[RowNest]) -> ir.Operation:
        """The kernel and its launch, which is returned."""
        kernel, read = self._kernel, read_in_memory(nests)
        used = read | set(self._kept)
        # What has one element for each row says nothing about how rows are read.
        wide = [o for o in wide_operands([row.nest for row in nests if row.columns]) if o.buffer in used]
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
            reduction = BlockReduction(kernel, width, once=True)
            behind = behind_vector(wide, lanes) if lanes > 1 else None

            def each(groups: int) -> None:
                row = block_id() * height + thread_id(1)
                # Threads without a row see the last one, of which they have no elements.
                outer = split(smaller(row, rows - 1), extents[0][: self._rows])
                follow = row if rows_follow(wide, self._rows) else None
                exists = row < rows
                share = Share(outer, lanes, behind, thread_id(), width, groups, exists, follow)
                Row(share, reduction, self._kept, in_place=in_place).write(nests, extents)

            either(is_held, [], lambda: each(groups), lambda: each(0))
        # Elements without neighbours have an address each, and two extremes at a time have positions: such
        # threads get the registers of more.
        alone = read - {o.buffer for o in wide}
        apart = any(o.buffer in alone and not row.is_row(o) for row in nests for o in row.nest.operands)
        apart |= any(sum(map(bool, predicates_of(row.nest))) > 1 for row in nests)
        kernel.limit(_WIDTHS[-1] if apart else _RESIDENT, 1)
        return kernel.launch([grid], [width, height])


@record()
class Online:
    """A maximum and, after it, a sum of exponentials of differences from it, in one pass over long rows.

    A thread has the largest element so far, and the sum of what all are compared with that one; where
    there is a larger one, the sum is multiplied by the exponential of the difference. Source: M. Milakov,
    N. Gimelshein, "Online normalizer calculation for softmax" (2018).

    `term` is what is added up, in the body of the sum; `element` and `same` are the element as an argument of
    both bodies, `most` is the maximum in that of the sum.
    """

    extreme: RowNest
    sum: RowNest
    term: ir.Value
    element: ir.Value
    same: ir.Value
    most: ir.Value

    @classmethod
    def of(cls, row: RowNest, later: Sequence[RowNest]) -> Online | None:
        """The pair that begins with a nest; None if there is none."""
        if [how.name for how in row.combiners.values()] != ["arith.maximumf"]:
            return None
        (place,) = row.combiners
        output = row.nest.outputs[place]
        (element,) = [x for x in row.nest.yields[place].owner.operands if x != output.argument]
        if (read := next((o for o in row.nest.inputs if o.argument == element), None)) is None:
            return None
        for other in later:
            if [how.name for how in other.combiners.values()] == ["arith.addf"]:
                return cls._matched(row, other, read, output)
            if other.combiners or any(o.buffer in (read.buffer, output.buffer) for o in other.nest.outputs):
                return None
        return None

    @classmethod
    def _matched(cls, row: RowNest, other: RowNest, read: Operand, output: Operand) -> Online | None:
        """The pair of a maximum and a sum, if that is one of exponentials of the differences."""
        (place,) = other.combiners
        total = other.nest.outputs[place].argument
        (term,) = [x for x in other.nest.yields[place].owner.operands if x != total]
        made = definition(term, "math.exp")
        difference = None if made is None else definition(made.operands[0], "arith.subf")
        if difference is None:
            return None
        known = {o.argument: (o.buffer, list(o.axes)) for o in other.nest.inputs}
        same, most = difference.operands
        wanted = [(read.buffer, list(read.axes)), (output.buffer, list(output.axes))]
        if [known.get(same), known.get(most)] != wanted or row.columns != other.columns:
            return None
        return cls(row, other, term, read.argument, same, most)

    def neutral(self) -> list[ir.Value]:
        """Initial maximum and sum; differences from infinity would not be numbers."""
        kind = self.term.type
        return [literal(float(np.finfo(dtype_of(kind)).min), kind), literal(0.0, kind)]

    def _exponential(self, value: ir.Value, most: ir.Value) -> ir.Value:
        return self.sum.nest.compute([self.term], {self.same: value, self.most: most}, [])[0]

    def take(self, value: ir.Value, most: ir.Value, total: ir.Value) -> list[ir.Value]:
        """Maximum and sum after an element."""
        new = larger(most, value)
        part = self._exponential(smaller(most, value), new)
        return [new, build.select(value > most, total * part + literal(1.0, value.type), total + part)]

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """Maximum and sum of two parts of a row."""
        most = larger(left[0], right[0])
        return [most, self.rescaled(left, most) + self.rescaled(right, most)]

    def rescaled(self, part: Sequence[ir.Value], new: ir.Value) -> ir.Value:
        """The sum of a part of a row for another maximum."""
        most, total = part
        return total * self._exponential(most, new)

    def settled(self, most: ir.Value, total: ir.Value) -> list[ir.Value]:
        """Maximum and sum of a thread; one that has seen nothing above -inf has that."""
        nothing = literal(float("-inf"), most.type)
        return [build.select(total.equals(0.0), nothing, most), total]


class Row:
    """Writes what a run of nests does to one row: `kept` are buffers that are read elsewhere, `in_place` says
    whether any of them are read here, too.
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
        # The sum that is added up with the extreme before it, and what this has made of it.
        self._online: Online | None = None
        self._ahead: list[ir.Value] = []

    def write(self, nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]]) -> None:
        """All nests, and what is kept of them."""
        for number, (row, sizes) in enumerate(zip(nests, extents, strict=True)):
            self.nest(row, sizes, nests[number + 1 :])
        self.store()

    def hold(self, row: RowNest, columns: Held) -> None:
        """Says what of the columns of a nest the thread holds."""
        self._columns.update(dict.fromkeys(row.column_keys(), columns))

    def numbers(self, row: RowNest, needed: Sequence[Operand]) -> dict[ir.Value, ir.Value]:
        """Numbers of the row at present, of those operands of a nest without columns that are needed."""
        readers, first = self.readers(row), self._zero(0)
        return {o.argument: readers[o.argument](first, 0) for o in needed if o.argument in readers}

    def nest(self, row: RowNest, sizes: Sequence[ir.Value], later: Sequence[RowNest] = ()) -> None:
        """A nest of some sizes, before others."""
        nest, keys = row.nest, row.column_keys()
        columns = next((found for key, found in self._columns.items() if key in keys), None)
        if columns is None:
            columns = self._share.of([sizes[axis] for axis in row.columns])
        self._columns.update(dict.fromkeys(keys, columns))
        if isinstance(columns, Columns):
            self._online = Online.of(row, later) or self._online
        if row.combiners:
            self._reduce(row, columns)
        initial = self.readers(row)
        for place, operand in enumerate(nest.outputs):
            if place in row.combiners:
                continue
            self._places[operand.buffer] = operand
            element = self._element(nest, nest.yields[place], initial)
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
        if buffer not in self._elements:
            return lambda group, lane: group.load(operand, lane)
        element = self._elements[buffer][0]
        if row.is_row(operand):
            return lambda group, lane: element(self._zero(len(operand.axes) - row.rows), 0)
        return element

    def _element(self, nest: Nest, value: ir.Value, readers: dict[ir.Value, Element]) -> Element:
        """The rule for a value of the body, of each element, which is computed once a group."""
        wanted = [value]
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

        def alone(at: int) -> Element:
            """An element by itself: any wins against nothing."""
            value = _element_of(wanted[at], accumulators[at])
            if value is not None:
                return self._element(nest, value, readers)
            return lambda group, lane: body(group, lane, neutral)[at]

        neutral = [c.constant(value.type) for c, value in zip(combiners, accumulators, strict=True)]
        steps = at_once(self._cost(nest), self._share.lanes)
        online = self._online
        if online is not None and row is online.sum:
            (most,) = (self._values[o.buffer] for o in nest.inputs if o.argument == online.most)
            partial = [online.rescaled(self._ahead, most)]
        elif online is not None and row is online.extreme:
            take, element = online.take, readers[online.element]

            def both(group: Group, lane: int, carried: list[ir.Value]) -> list[ir.Value]:
                return take(element(group, lane), *carried)

            self._ahead = online.settled(*columns.fold(online.neutral(), both, online.combine, steps))
            partial = self._ahead[:1]
        elif isinstance(columns, Held) and nest.indexed and all(isinstance(x, First) for x in combiners[::2]):
            # Their positions are those of the row's elements, not of parts.
            pairs = [(at, how) for at, how in enumerate(combiners) if isinstance(how, First)]
            found = [columns.first(alone(at), how, neutral[at : at + 2]) for at, how in pairs]
            partial = list(itertools.chain(*found))
        else:
            partial = columns.fold(neutral, body, each_of(combiners), steps)
        combine, zero = each_of(combiners), self._zero(len(row.columns))
        before = [readers[accumulator](zero, 0) for accumulator in accumulators]
        after = combine(before, self._reduction.together(partial, combine, neutral))
        for place, value in zip(places, after, strict=True):
            operand = nest.outputs[place]
            self._values[operand.buffer], self._places[operand.buffer] = value, operand

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
                assert self._share.active is not None
                with when(thread_id().equals(0) & self._share.active):
                    operand = self._places[buffer]
                    zeros = [build.const_index(0)] * (len(operand.axes) - len(outer))
                    store(value, whole(buffer), [*outer, *zeros])
        for buffer, (element, columns) in elements.items():
            columns.write(element, self._places[buffer])


def _element_of(chosen: ir.Value, old: ir.Value) -> ir.Value | None:
    """The other one of two that are chosen from in a body, one of which was there before."""
    others = [x for x in chosen.owner.operands if x.type == old.type and x != old]
    return others[0] if len(others) == 1 else None


def longest_of(nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]]) -> ir.Value:
    """The number of elements of the longest row, at least 1; a constant where all sizes are known."""
    longest = build.const_index(1)
    for row, sizes in zip(nests, extents, strict=True):
        longest = larger(longest, product([sizes[axis] for axis in row.columns]))
    return longest


def _is_held(
    nests: Sequence[RowNest], extents: Sequence[Sequence[ir.Value]], longest: ir.Value, each: int
) -> ir.Value:
    """True if threads that have so many elements each hold the longest row, and no row is empty."""
    most, known = _WIDTHS[-1] * each, [row.most_columns for row in nests]
    conditions = [] if all(n is not None and n <= most for n in known) else [longest < most + 1]
    for row, sizes in zip(nests, extents, strict=True):
        conditions += [size > 0 for axis, size in enumerate(sizes) if axis in row.columns]
    return all_of(conditions)


def shape_of_blocks(longest: ir.Value, each: int) -> tuple[ir.Value, ir.Value]:
    """Threads of a row, and rows of a block, for rows of at most so many elements, where a thread holds
    `each`; longer rows have all threads.
    """
    width, height = build.const_index(1), build.const_index(_BLOCK)
    for narrow, wide in itertools.pairwise(_WIDTHS):
        longer = longest > narrow * (each if wide > 8 else min(each, _SIDE_BY_SIDE))
        width = build.select(longer, wide, width)
        height = build.select(longer, max(_BLOCK // wide, 1), height)
    return width, height


def read_in_memory(nests: Sequence[RowNest]) -> set[ir.Value]:
    """The buffers that are read before any of the nests has written them."""
    known, read = set[ir.Value](), set[ir.Value]()
    for row in nests:
        needed = {operand.buffer for operand in row.nest.needed(row.nest.yields)}
        needed |= {row.nest.outputs[place].buffer for place in row.combiners}
        read |= needed - known
        known |= {operand.buffer for operand in row.nest.outputs}
    return read
