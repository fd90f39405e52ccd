# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions: the share of a thread in a row, and what the threads of a block come to.

A share is every so manyth group of elements (`Columns`), or some that the thread holds in registers (`Held`).
The order of all additions is fixed by the number of threads, so that equal calls give equal bits. A butterfly
of shuffles leaves the result in all threads, in the same order for each: a + b is b + a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple, TypeAlias

from graphc.ir import build
from graphc.ir.value import as_index, converted, flag, larger, smaller
from graphc.lowering.calls import product
from graphc.lowering.carried import carry, either, span, when
from graphc.lowering.loops import Operand
from graphc.lowering.memory.layouts import is_contiguous
from graphc.lowering.partial_reductions import Combiner
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Nest, is_wide, load, load_vector, store, store_vector
from graphc.passes.gpu._notation import (
    WARP,
    barrier,
    block_dim,
    extract,
    loads_first,
    shuffled,
    split,
    thread_id,
    vector_of,
)
from graphc_dialects._mlir import ir

Values: TypeAlias = Sequence[ir.Value]
Combine: TypeAlias = Callable[[Values, Values], list[ir.Value]]


# Operations in a step of a thread: more loads at a time are worth no more code. Functions, and positions
# of 64 bits, count as many.
_STEP, _MOST_AT_ONCE = 192, 4
_COSTS = {"math": 20, "func": 20, "linalg": 8}


class BlockReduction:
    """Reductions along x of the threads of a block, for each y apart, with a buffer of one element a warp.

    Args:
        kernel: where to.
        width: threads along x, an index: a power of two below 32, where several y share a warp, or a
            multiple of a warp; None if there is one y with several warps.
        once: whether code of each reduction runs once. It has buffers of its own then, which nothing is
            written to while others still read them.
    """

    def __init__(self, kernel: Kernel, width: ir.Value | None = None, *, once: bool = False) -> None:
        self._kernel, self._width, self._once = kernel, width, once
        self._buffers: dict[tuple[str, int], ir.Value] = {}

    def together(self, values: Values, combine: Combine, neutral: Values) -> list[ir.Value]:
        """Combination of several values together over all threads of a y, in all of them; all threads of the
        block get here. `combine` gives of two threads' values those of both; `neutral` ones change nothing.
        """
        if (width := self._width) is None:
            return self._across(_warp(values, combine), combine, neutral, block_dim())
        kinds = [value.type for value in values]
        # The lanes of a warp that belong to a y; a single one has it already.
        own = either(width > 1, kinds, lambda: _warp(values, combine, width), lambda: values)
        return either(width > WARP, kinds, lambda: self._across(own, combine, neutral, width), lambda: own)

    def _across(self, values: Values, combine: Combine, neutral: Values, width: ir.Value) -> list[ir.Value]:
        """Combination over the warps of a y."""
        buffers = self._shared([value.type for value in values])
        thread, zero = thread_id(), build.const_index(0)
        lane, warp = thread % WARP, thread // WARP
        count = width // WARP
        first = zero if self._width is None else thread_id(1) * count
        with when(lane.equals(zero)):
            place = first + warp
            for value, buffer in zip(values, buffers, strict=True):
                buffer[place] = value
        barrier()
        within = lane.below(count)
        # Lanes without a warp read the first one's value instead of nothing.
        place = first + build.select(within, lane, zero)
        found = [build.select(within, x[place], none) for x, none in zip(buffers, neutral, strict=True)]
        total = _warp(found, combine)
        if not self._once:
            barrier()
        return total

    def _shared(self, kinds: Sequence[ir.Type]) -> list[ir.Value]:
        """A buffer for each value, others for values of the same type."""
        if self._once:
            return [self._kernel.shared([WARP], kind) for kind in kinds]
        keys = [(str(kind), kinds[:number].count(kind)) for number, kind in enumerate(kinds)]
        for key, kind in zip(keys, kinds, strict=True):
            if key not in self._buffers:
                self._buffers[key] = self._kernel.shared([WARP], kind)
        return [self._buffers[key] for key in keys]


def _warp(values: Values, combine: Combine, width: int | ir.Value = WARP) -> list[ir.Value]:
    """Combination over groups of `width` lanes."""
    offset, width, known = WARP // 2, as_index(width), build.constant_value(width)
    while offset:
        if known is None or offset < known:
            both = combine(values, [shuffled(value, offset) for value in values])
            within = width > offset
            values = [build.select(within, *pair) for pair in zip(both, values, strict=True)]
        offset //= 2
    return list(values)


# -- several loads of a thread under way --------------------------------------------------------------------


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
    if at_once > 1:
        ahead = stride * (at_once - 1)
        step = stride + ahead

        def several(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            after, found = number + step, carried[1:]
            for _ in range(at_once):
                found = body(number, found)
                number = number + stride
            return [after, *found]

        start, *values = carry(stop - ahead, [start, *values], several, start=start, step=step)
        loads_first(start.owner.regions[0].blocks[0])
    return carry(stop, values, body, start=start, step=stride)


class First(Combiner):
    """The extreme of two elements, of which NaN is one; its name is the predicate by which one wins."""

    def wins(self, new: ir.Value, old: ir.Value) -> ir.Value:
        """True if an element wins against one before it."""
        if isinstance(new.type, ir.IntegerType):
            predicates = {"gt": new.__gt__, "lt": new.__lt__, "ugt": new.above, "ult": new.below}
            return predicates[self.name](old)
        # Comparisons with NaN are false.
        behind = new <= old if self.name == "gt" else new >= old
        return behind.equals(0) & old.equals(old)

    def extreme(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """The element that wins."""
        if isinstance(left.type, ir.IntegerType):
            return build.select(self.wins(right, left), right, left)
        return larger(left, right) if self.name == "gt" else smaller(left, right)

    def is_same(self, value: ir.Value, extreme: ir.Value) -> ir.Value:
        """True if an element is the extreme of some that it is one of: NaN, if any is."""
        same = value.equals(extreme)
        return same if isinstance(value.type, ir.IntegerType) else same | value.differs(value)

    def together(self, left: Values, right: Values) -> list[ir.Value]:
        """Element and position of the one that wins; of equal ones of the first."""
        wins, loses = self.wins(right[0], left[0]), self.wins(left[0], right[0])
        wins = wins | (right[1].below(left[1]) & loses.equals(0))
        return [build.select(wins, *pair) for pair in zip(right, left, strict=True)]


def first(name: str, kind: ir.Type) -> list[Combiner]:
    """Combiners of elements of a type, which win by a predicate, and of their positions: unsigned, so that
    any element's comes before -1.
    """
    least, most = float("-inf"), float("inf")
    if isinstance(kind, ir.IntegerType):
        half = 1 << kind.width - 1
        least, most = (0, -1) if name[0] == "u" else (-half, half - 1)
    return [First(name, most if name.endswith("lt") else least), Combiner("arith.minui", -1)]


def each_of(combiners: Iterable[Combiner]) -> Combine:
    """Combines values one by one, an extreme with its position, which is after it."""
    known = list(combiners)

    def combine(left: Values, right: Values) -> list[ir.Value]:
        found: list[ir.Value] = []
        while (at := len(found)) < len(known):
            how, pair = known[at], slice(at, at + 2)
            if isinstance(how, First):
                found += how.together(left[pair], right[pair])
            else:
                found.append(how.combine(left[at], right[at]))
        return found

    return combine


def cost(nest: Nest) -> int:
    """Operations for an element."""
    return sum(_COSTS.get(op.name.partition(".")[0], 1) for op in nest.body)


def at_once(operations: int, lanes: int) -> int:
    """Number of groups of a step, of so many operations for an element: a power of two.

    Groups of two have elements of 64 bits, which take twice the registers; so does arithmetic.
    """
    most = 2 if lanes == 2 or operations > 2 else _MOST_AT_ONCE
    return 1 << (min(max(_STEP // max(operations * lanes, 1), 1), most).bit_length() - 1)


# -- the share of a thread in a row ---------------------------------------------------------------------

# Gives the element of a row's array at a place of a group.
Element: TypeAlias = "Callable[[Group, int], ir.Value]"
# Gives the accumulators after an element of a group.
Fold: TypeAlias = "Callable[[Group, int, list[ir.Value]], list[ir.Value]]"


class Group:
    """Neighbouring elements of a row, which a thread has at a time: so many lanes from the one with a number
    on, in row-major order; `outer` are the indices of the row, `sizes` those of the columns.
    """

    def __init__(
        self, outer: Sequence[ir.Value], sizes: Sequence[ir.Value], number: ir.Value, lanes: int = 1
    ) -> None:
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


def write_elements(
    nest: Nest, group: Group, known: Callable[[int], dict[ir.Value, ir.Value]] = lambda lane: {}
) -> None:
    """Computes and writes a group of elements of the results of a nest without reductions; `known` says what
    arguments of the body are, by the lane, and others are loaded.
    """
    found = []
    for lane in range(group.lanes):
        values = known(lane)
        others = [o for o in nest.needed(nest.yields) if o.argument not in values]
        values |= {operand.argument: group.load(operand, lane) for operand in others}
        found.append(nest.compute(nest.yields, values, group.indices(lane)))
    for number, operand in enumerate(nest.outputs):
        group.store([values[number] for values in found], operand)


def rows_follow(operands: Sequence[Operand], rows: int) -> bool:
    """True if rows of so many dimensions, and one of columns, follow each other in all of some arrays."""
    return all(o.axes == list(range(rows + 1)) and is_contiguous(o.buffer) for o in operands)


class Share(NamedTuple):
    """The share of a thread in a row, whatever columns this has.

    Attributes:
        outer: indices of the row.
        lanes: elements of a group.
        behind: elements between the address of a vector and arrays that are loaded together; None if there
            are none of these.
        first, stride: the first group of the thread, and how far it is to the next one; where a thread holds
            groups, its number and how many threads the row has.
        groups: that a thread holds; 0 if it holds none.
        active: whether the row exists, else it stands for another one; None if it does.
        row: number of the row, if rows of any length follow each other in all that is loaded together.
    """

    outer: Sequence[ir.Value]
    lanes: int
    behind: ir.Value | None
    first: ir.Value
    stride: ir.Value
    groups: int = 0
    active: ir.Value | None = None
    row: ir.Value | None = None

    def of(self, sizes: Sequence[ir.Value]) -> Columns | Held:
        """The share in columns of some sizes."""
        return Held(self, sizes) if self.groups and sizes else Columns(self, sizes)


class Columns:
    """The share of a thread in the elements of a row: every so manyth group, then every so manyth element.

    Groups begin at the first element of the row whose address is a multiple of a vector.
    """

    def __init__(self, share: Share, sizes: Sequence[ir.Value]) -> None:
        self._outer, self._sizes, self._first, self._stride = share.outer, sizes, share.first, share.stride
        total, zero, lanes, behind = product(sizes), build.const_index(0), share.lanes, share.behind
        self._total = total if share.active is None else build.select(share.active, total, zero)
        self._lanes = lanes if sizes and behind is not None else 1
        self._head = self._count = zero
        if self._lanes > 1:
            assert behind is not None
            rest, follow = sizes[-1] % lanes, share.row if share.outer else zero
            if len(sizes) == 1 and follow is not None:
                together = behind < lanes
                self._head = (lanes - (behind + follow * rest) % lanes) % lanes
            else:
                together = behind.equals(0) & rest.equals(0)
            inside = larger(self._total - self._head, 0)
            self._count = build.select(together, inside // lanes, zero)

    def fold(self, neutral: Values, body: Fold, combine: Combine, at_once: int) -> list[ir.Value]:
        """Final accumulators of the thread, which begin with neutral ones; `body` gives those after an
        element of a group, `combine` those of two. The loads of `at_once` groups may be under way together.
        """
        values, count = list(neutral), len(neutral)
        if self._lanes > 1:

            def groups(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
                return self._group(number).fold(body, carried)

            start, values = self._first, values * self._lanes
            wide = strided(self._count, values, groups, start, self._stride, at_once)
            values = wide[:count]
            for lane in range(1, self._lanes):
                values = combine(values, wide[lane * count : (lane + 1) * count])
            # Before and behind the groups there are few elements.
            at_once = 1

        def elements(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return self._element(number).fold(body, carried)

        return strided(self._others, values, elements, self._first, self._stride, at_once)

    @property
    def _others(self) -> ir.Value:
        """The number of elements that are in no group."""
        return self._total - self._count * self._lanes

    def _group(self, number: ir.Value) -> Group:
        return Group(self._outer, self._sizes, number * self._lanes + self._head, self._lanes)

    def _element(self, number: ir.Value) -> Group:
        """One of the elements that are in no group."""
        between = build.select(number < self._head, 0, self._count * self._lanes)
        return Group(self._outer, self._sizes, number + between)

    def prepare(self, element: Element) -> None:
        """Nothing: elements are computed where they are written."""

    def write(self, element: Element, operand: Operand) -> None:
        """Computes and writes each group, and then each element that is left."""

        def body(group: Group) -> None:
            group.store([element(group, lane) for lane in range(group.lanes)], operand)

        if self._lanes > 1:
            with span(self._count, start=self._first, step=self._stride) as number:
                body(self._group(number))
        with span(self._others, start=self._first, step=self._stride) as number:
            body(self._element(number))


class Held:
    """A row in the registers of some threads, each of which has a few groups of neighbouring elements.

    Where memory does not allow groups to be loaded together, their elements are as far apart as there are
    threads, so that neighbouring threads read side by side. Threads that have fewer elements than others read
    the last ones again, and leave them out. No size of columns is 0. With `is_aligned` the code is only for
    memory that allows groups to be loaded together.
    """

    def __init__(self, share: Share, sizes: Sequence[ir.Value], *, is_aligned: bool = False) -> None:
        self._is_aligned, groups, lanes, behind = is_aligned, share.groups, share.lanes, share.behind
        self._outer, self._sizes, self._lanes = share.outer, sizes, lanes
        total, short = product(sizes), ir.IntegerType.get_signless(32)
        known = build.constant_value(total), build.constant_value(share.stride)
        if known[0] is not None and known[1] is not None:
            groups = min(groups, -(-known[0] // (known[1] * lanes)))
        # A row that is held has few elements.
        self._total, threads, thread = (converted(x, short) for x in (total, share.stride, share.first))
        assert share.active is not None
        self._step, of_all = threads * lanes, build.select(share.active, self._total, 0)
        self._together = together = flag(False)
        if behind is not None:
            self._together = together = behind.equals(0) & (sizes[-1] % lanes).equals(0)
        of_all = build.select(together, of_all // lanes, of_all)
        self._first = build.select(together, thread * lanes, thread)
        self._between = build.select(together, 1, threads)
        # Elements of the thread: those of a number below that.
        count = of_all // threads + converted(thread < of_all % threads, short)
        self._count = build.select(together, count * lanes, count)
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
        return build.constant_value(self._together) is None and is_wide(operand, rank - 1)

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

        if not self._is_wide(operand):
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

    def fold(self, neutral: Values, body: Fold, combine: Combine, at_once: int) -> list[ir.Value]:
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

    def first(self, element: Element, how: First, neutral: Sequence[ir.Value]) -> list[ir.Value]:
        """The extreme of the thread and its position: the element first, then the first one that is it.

        That takes fewer operations than to carry positions of 64 bits along.
        """
        nothing, none = neutral
        slots = [(number, lane) for number in range(len(self._groups)) for lane in range(self._lanes)]
        values = [
            build.select(self._is_own(number, lane), element(self._groups[number], lane), nothing)
            for number, lane in slots
        ]
        found = values[: self._lanes]
        for place, value in enumerate(values[self._lanes :]):
            found[place % self._lanes] = how.extreme(found[place % self._lanes], value)
        extreme = reduce(how.extreme, found)
        # Others are behind those of the row.
        position = self.place(*slots[-1])
        for slot, value in reversed(list(zip(slots, values, strict=True))):
            position = build.select(how.is_same(value, extreme), self.place(*slot), position)
        position = converted(as_index(position), none.type)
        return [extreme, build.select(self._count > 0, position, none)]

    def prepare(self, element: Element) -> None:
        """Computes all elements of the thread, before any is written."""
        for group in self._groups:
            for lane in range(self._lanes):
                element(group, lane)

    def write(self, element: Element, operand: Operand) -> None:
        """Writes the elements of the thread."""
        found = [[element(group, lane) for lane in range(self._lanes)] for group in self._groups]

        def apart() -> None:
            for number, values in enumerate(found):
                for lane, value in enumerate(values):
                    with when(self._is_own(number, lane)):
                        store(value, operand, self.indices(number, lane))

        def together() -> None:
            for number, values in enumerate(found):
                with when(self._is_own(number, 0)):
                    store_vector(values, operand, self.indices(number, 0))

        either(self._together if self._is_wide(operand) else flag(False), [], together, apart)


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
