# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and prefixes of a block of threads: shuffles within warps, shared memory between them.

The order of all additions is fixed by the number of threads, so that equal calls give equal bits. A butterfly
of shuffles leaves the result in all threads, in the same order for each: a + b is b + a. Operations
of prefixes need not commute. Source: G. Blelloch, "Prefix sums and their applications" (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from graphc.ir import build
from graphc.ir.value import converted, larger, smaller
from graphc.lowering.carried import carry, either, when
from graphc.lowering.partial_reductions import Combiner
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._nest import Nest
from graphc.passes.gpu._notation import WARP, barrier, block_dim, loads_first, shuffled, thread_id
from graphc_dialects._mlir import ir

Values: TypeAlias = Sequence[ir.Value]
Combine: TypeAlias = Callable[[Values, Values], list[ir.Value]]


# The most threads of a block.
THREADS = 256
_METHODS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and_", "or": "or_"}
# Of bytes that are 0 or 1.
_OF_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and", "and": "and", "or": "or"}


# Operations in a step of a thread: more loads at a time are worth no more code. Functions, and positions
# of 64 bits, count as many.
_STEP, _MOST_AT_ONCE = 192, 4
_COSTS = {"math": 20, "func": 20, "linalg": 8}

# A mark of nests that find the first extreme of rows, and its position: what decides between two elements.
FIRST = "graphc.first"


class Associative(Protocol):
    """An operation on tuples of numbers of one type, which need not commute."""

    @property
    def parts(self) -> int:
        """Number of components of a tuple."""

    @property
    def type(self) -> ir.Type:
        """Of the numbers."""

    def neutral(self) -> list[ir.Value]:
        """The tuple that changes nothing."""

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """`left` and then `right`."""


class Running:
    """An associative operation, of tuples of numbers.

    A step of a linear recurrence is the pair (a, b); two steps are the pair (a a', a' b + b').

    Args:
        kind: "add", "mul", "max", "min", "and", "or" or "linear".
        dtype: of the numbers; bools are bytes.

    Attributes:
        dtype: of the numbers in memory.
    """

    def __init__(self, kind: str, dtype: np.dtype) -> None:
        self._linear = kind == "linear"
        is_bool = dtype == np.bool_
        self._kind = _OF_BOOLS[kind] if is_bool and not self._linear else kind
        self.dtype = np.dtype("uint8") if is_bool else dtype
        self._b = ScalarBuilder(ir)

    @property
    def parts(self) -> int:
        """Number of components of a tuple."""
        return 2 if self._linear else 1

    @property
    def type(self) -> ir.Type:
        """Of the numbers."""
        return self._b.type(self.dtype)

    def neutral(self) -> list[ir.Value]:
        """The tuple that changes nothing; a sum begins with -0.0, to which 0.0 and -0.0 can be added."""
        if self._linear:
            return [self._constant(1), self._constant(self._nothing())]
        return [self._constant(self._number())]

    def combine(self, left: Sequence[ir.Value], right: Sequence[ir.Value]) -> list[ir.Value]:
        """`left` and then `right`."""
        if self._linear:
            product = self._b.mul(self._scalar(left[0]), self._scalar(right[0]))
            return [product.value, self.apply(left[1], right)]
        return [self.apply(left[0], right)]

    def apply(self, value: ir.Value, step: Sequence[ir.Value]) -> ir.Value:
        """The number that comes after one."""
        b, x = self._b, self._scalar(value)
        if self._linear:
            made = b.add(b.mul(self._scalar(step[0]), x), self._scalar(step[1]))
        else:
            made = getattr(b, _METHODS[self._kind])(x, self._scalar(step[0]))
        return made.value

    def _scalar(self, value: ir.Value) -> Scalar:
        return Scalar(value, self.dtype)

    def _constant(self, number: complex) -> ir.Value:
        return self._b.const(number, self.dtype).value

    def _nothing(self) -> complex:
        return -0.0 if self.dtype.kind == "f" else complex(-0.0, -0.0) if self.dtype.kind == "c" else 0

    def _number(self) -> complex:
        if self._kind in ("add", "or"):
            return self._nothing()
        if self._kind == "mul":
            return 1
        if self._kind == "and":
            return int(np.invert(np.zeros((), self.dtype)))
        if self.dtype.kind == "f":
            return float("-inf" if self._kind == "max" else "inf")
        limits = np.iinfo(self.dtype)
        return int(limits.min if self._kind == "max" else limits.max)


class BlockPrefix:
    """Prefixes over the threads of a block, which has threads along x only, whole warps.

    Args:
        kernel: it gets a buffer of one tuple a warp.
        running: the operation.
    """

    def __init__(self, kernel: Kernel, running: Associative) -> None:
        self._running = running
        self._buffers = [kernel.shared([WARP], running.type) for _ in range(running.parts)]

    def before(self, values: list[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """Prefix over all threads before one, and the total over all; all threads of the block have
        to get here.
        """
        running = self._running
        thread = thread_id()
        lane, warp = thread % WARP, thread // WARP
        own = self._warp(values, lane, WARP)
        with when(lane.equals(WARP - 1)):
            for value, buffer in zip(own, self._buffers, strict=True):
                buffer[warp] = value
        barrier()
        count = block_dim() // WARP
        within = lane.below(count)
        place = build.select(within, lane, 0)
        found = [b[place] for b in self._buffers]
        found = [build.select(within, x, y) for x, y in zip(found, running.neutral(), strict=True)]
        warps = self._warp(found, lane, THREADS // WARP)
        barrier()
        total = _all(warps, count - 1)
        previous = _all(warps, larger(warp - 1, 0))
        first_lane, first_warp = (x.equals(0) for x in (lane, warp))
        inside = self._or_neutral(first_lane, [shuffled(value, 1, "up") for value in own])
        return running.combine(self._or_neutral(first_warp, previous), inside), total

    def _or_neutral(self, condition: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        neutral = self._running.neutral()
        return [build.select(condition, x, value) for x, value in zip(neutral, values, strict=True)]

    def _warp(self, values: list[ir.Value], lane: ir.Value, width: int) -> list[ir.Value]:
        """Inclusive prefix over the first lanes."""
        offset = 1
        while offset < width:
            others = [shuffled(value, offset, "up") for value in values]
            exists = lane >= offset
            both = self._running.combine(others, values)
            values = [build.select(exists, x, y) for x, y in zip(both, values, strict=True)]
            offset *= 2
        return values


def _all(values: list[ir.Value], lane: ir.Value) -> list[ir.Value]:
    """The values of one lane, for all lanes of the warp."""
    number = converted(lane, ir.IntegerType.get_signless(32))
    return [shuffled(value, number, "idx") for value in values]


class BlockReduction:
    """Reductions along x of the threads of a block, for each y apart.

    Args:
        kernel: it gets a buffer of one element a warp for each type.
        width: threads along x, an index: a power of two below 32, where several y share a warp, or a
            multiple of a warp; None if there is one y with several warps.
        once: whether code of each reduction runs once. It has buffers of its own then, which nothing is
            written to while others still read them.
    """

    def __init__(self, kernel: Kernel, width: ir.Value | None = None, *, once: bool = False) -> None:
        self._kernel, self._width, self._once = kernel, width, once
        self._buffers: dict[tuple[str, int], ir.Value] = {}

    def all(self, value: ir.Value, combiner: Combiner) -> ir.Value:
        """Combination over all threads of a y, in all of them; all threads of the block get here."""
        return self.together(
            [value], lambda a, b: [combiner.combine(a[0], b[0])], [combiner.constant(value.type)]
        )[0]

    def together(self, values: Values, combine: Combine, neutral: Values) -> list[ir.Value]:
        """As `all`, of several values that are combined together; the order of the threads is any.

        Args:
            values: of the thread.
            combine: of two threads' values those of both.
            neutral: what changes nothing.
        """
        known = None if self._width is None else build.constant_value(self._width)
        if self._width is not None and known is None:
            values = self._lanes(values, combine, self._width)
        else:
            values = _warp(values, combine, WARP if known is None else min(known, WARP))
        if self._width is None:
            return self._across(values, combine, neutral, block_dim())
        width, own = self._width, values
        if known is not None:
            return self._across(values, combine, neutral, width) if known > WARP else values
        several = width > WARP
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._across(own, combine, neutral, width), lambda: own)

    def _across(self, values: Values, combine: Combine, neutral: Values, width: ir.Value) -> list[ir.Value]:
        """Combination over the warps of a y."""
        buffers = self._shared([value.type for value in values])
        thread, zero = thread_id(), build.const_index(0)
        lane, warp = thread % WARP, thread // WARP
        count = width // WARP
        first = zero
        if self._width is not None:
            first = thread_id(1) * count
        with when(lane.equals(zero)):
            place = first + warp
            for value, buffer in zip(values, buffers, strict=True):
                buffer[place] = value
        barrier()
        within = lane.below(count)
        # Lanes without a warp read the first one's value instead of nothing.
        place = first + build.select(within, lane, zero)
        found = []
        for buffer, nothing in zip(buffers, neutral, strict=True):
            value = buffer[place]
            found.append(build.select(within, value, nothing))
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

    def _lanes(self, values: Values, combine: Combine, width: ir.Value) -> list[ir.Value]:
        """Combination over the lanes of a warp that belong to a y; a single one has it already."""
        several = width > 1
        kinds = [value.type for value in values]
        return either(several, kinds, lambda: self._shuffled(values, combine, width), lambda: values)

    def _shuffled(self, values: Values, combine: Combine, width: ir.Value) -> list[ir.Value]:
        offset = WARP // 2
        while offset:
            both = combine(values, [shuffled(value, offset) for value in values])
            within = offset < width
            values = [build.select(within, new, old) for new, old in zip(both, values, strict=True)]
            offset //= 2
        return list(values)


def _warp(values: Values, combine: Combine, width: int = WARP) -> list[ir.Value]:
    """Combination over groups of `width` lanes."""
    offset = width // 2
    while offset:
        values = combine(values, [shuffled(value, offset) for value in values])
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


def first(name: str, kind: ir.Type) -> tuple[First, Combiner]:
    """Combiners of elements of a type, which win by a predicate, and of their positions: unsigned, so that
    any element's comes before -1.
    """
    least, most = float("-inf"), float("inf")
    if isinstance(kind, ir.IntegerType):
        half = 1 << kind.width - 1
        least, most = (0, -1) if name[0] == "u" else (-half, half - 1)
    return First(name, most if name.endswith("lt") else least), Combiner("arith.minui", -1)


def each_of(combiners: Iterable[Combiner]) -> Combine:
    """Combines values one by one, or an extreme with its position."""
    known = list(combiners)
    if known and isinstance(known[0], First):
        return known[0].together
    return lambda left, right: [how.combine(a, b) for how, a, b in zip(known, left, right, strict=True)]


def cost(nest: Nest) -> int:
    """Operations for an element."""
    return sum(_COSTS.get(op.name.partition(".")[0], 1) for op in nest.body)


def at_once(operations: int, lanes: int) -> int:
    """Number of groups of a step, of so many operations for an element: a power of two.

    Groups of two have elements of 64 bits, which take twice the registers; so does arithmetic.
    """
    most = 2 if lanes == 2 or operations > 2 else _MOST_AT_ONCE
    return 1 << (min(max(_STEP // max(operations * lanes, 1), 1), most).bit_length() - 1)
