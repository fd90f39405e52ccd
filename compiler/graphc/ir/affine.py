# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index arithmetic as functions of one unknown size.

What normalises a NumPy slice (minima, maxima, selects) is piecewise linear in the number of rows. Within a
*region*, an interval of values of the unknown `x`, every index value lies between two linear functions of x.
Where a comparison changes its outcome inside of a region, `Split` says so, and `over` looks at both parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from graphc.ir.build import predicate_of
from graphc.ir.constants import CONSTANTS
from graphc.ir.kinds import PER_ELEMENT
from graphc.ir.scan_view import is_scan
from graphc.ir.size import Size
from graphc.ir.traits import SIZES, Dimension, broadcast_sizes
from graphc.ir.views import order_of
from graphc.ir.walk import definition
from graphc_dialects._mlir import ir

Found = TypeVar("Found")
_DEPTH = 64
_MAX_REGIONS = 24


# The one unknown.
X = Size.of("x")


def at(f: Size, x: int) -> int:
    """The value of a function where the unknown is `x`."""
    return f.constant + f.slope * x


class Region(NamedTuple):
    """Values of x from `start` to `stop`, both included; None is infinity."""

    start: int | None = None
    stop: int | None = None

    def least(self, f: Size) -> int | None:
        """The smallest value of a function, None if there is none."""
        slope = f.slope
        if not slope:
            return f.constant
        end = self.start if slope > 0 else self.stop
        return None if end is None else f.constant + slope * end

    def most(self, f: Size) -> int | None:
        """The largest value of a function, None if there is none."""
        slope = f.slope
        if not slope:
            return f.constant
        end = self.stop if slope > 0 else self.start
        return None if end is None else f.constant + slope * end


class Range(NamedTuple):
    """Bounds of a value in a region; None is unknown."""

    low: Size | None = None
    high: Size | None = None

    @property
    def exact(self) -> Size | None:
        """The value itself, where it is known."""
        return self.low if self.low == self.high else None


UNKNOWN = Range()


def exactly(f: Size) -> Range:
    """A value that is known."""
    return Range(f, f)


class Split(Exception):
    """An answer differs on both sides of a point: below `at`, and from `at` on."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def over(region: Region, ask: Callable[[Region], Found]) -> list[tuple[Region, Found]] | None:
    """Answers to a question, for parts of the region that together make it up; None if there are too many."""
    pending, answers = [region], []
    while pending:
        part = pending.pop()
        try:
            answers.append((part, ask(part)))
        except Split as split:
            pending += [Region(part.start, split.at - 1), Region(split.at, part.stop)]
        if len(pending) + len(answers) > _MAX_REGIONS:
            return None
    return answers


def _fixed(f: Size, x: int) -> Size:
    """The number that a function is where the unknown is `x`."""
    return Size(at(f, x)) if f.terms else f


def is_negative(f: Size, region: Region) -> bool:
    """True if `f < 0` in the region. Raises Split where that changes."""
    most, least = region.most(f), region.least(f)
    if most is not None and most < 0:
        return True
    if least is not None and least >= 0:
        return False
    # Both happen, so the slope is not 0; the part from the root's ceiling (or after its floor) differs.
    raise Split(-(f.constant // f.slope) if f.slope > 0 else f.constant // -f.slope + 1)


def same_size(a: ir.Value, b: ir.Value) -> bool:
    """True if two index values are one size: one value, or the size of one dimension."""
    return bool(key_of(a) == key_of(b))


def key_of(value: ir.Value) -> Any:
    """A name of an index value that equal sizes share: a number, a dimension, or the value itself."""
    op = definition(value)
    if op is None:
        return value
    if op.name in CONSTANTS:
        return int(op.attributes["value"].value)
    if op.name == "tensor.dim":
        axis = key_of(op.operands[1])
        if isinstance(axis, int):
            return _dimension(op.operands[0], axis)
    return value


def _dimension(value: ir.Value, axis: int) -> Any:
    """A name of a dimension: its size, or that of the dimension that it is as long as by construction."""
    while value.type.shape[axis] < 0:
        op = definition(value)
        equal = () if op is None else as_long(op, axis)
        if not equal:
            return value, axis
        x, source = equal[0]
        if source < 0:
            # Of a number it is not known that it is not negative.
            known = key_of(x)
            return known if isinstance(known, int | tuple) else (value, axis)
        value, axis = x, source
    return value.type.shape[axis]


def as_long(op: ir.Operation, axis: int) -> Sequence[Dimension]:
    """Dimensions that one of an operation's result is as long as; the first one names it."""
    order = order_of(op)
    if order is not None:
        # Types do not always say that a new axis has size 1, and then it has no name.
        return [(op.operands[0], order[axis])] if order[axis] >= 0 else ()
    if op.name == "tensor.cast":
        return [(op.operands[0], axis)]
    rule = SIZES.get(op.name)
    if rule is not None:
        return rule(op)[axis]
    return broadcast_sizes(op)[axis] if op.name in PER_ELEMENT else ()


class Made(NamedTuple):
    """An index value, read once from the operation that makes it.

    Attributes:
        key: see `key_of`.
        name: of the operation; empty for arguments of blocks.
        operands: of the operation.
    """

    key: Any
    name: str
    operands: Sequence[ir.Value]


def _made(value: ir.Value) -> Made:
    op = definition(value)
    return Made(key_of(value), "", ()) if op is None else Made(key_of(value), op.name, list(op.operands))


class Evaluator:
    """Bounds of index values in a region.

    Args:
        region: where.
        known: bounds by key (see `key_of`); asked before a value is taken apart. May raise Split.
        nonzero: a size that is taken for granted not to be 0.
        made: what values are, which evaluators of other regions share, as long as no operation changes.
    """

    def __init__(
        self,
        region: Region,
        known: Callable[[Evaluator, Any], Range | None],
        nonzero: ir.Value | None = None,
        made: dict[ir.Value, Made] | None = None,
    ) -> None:
        self.region = region
        self._known = known
        self._nonzero = nonzero
        self._made: dict[ir.Value, Made] = {} if made is None else made
        self._memo: dict[ir.Value, Range] = {}

    def range(self, value: ir.Value, depth: int = _DEPTH) -> Range:
        """Bounds of an index or integer value. Raises Split."""
        found = self._memo.get(value)
        if found is None:
            found = self._range(value, depth)
            start, stop = self.region
            if start is not None and start == stop:
                low, high = found
                found = Range(low and _fixed(low, start), high and _fixed(high, start))
            self._memo[value] = found
        return found

    def _range(self, value: ir.Value, depth: int) -> Range:
        made = self._made.get(value)
        if made is None:
            made = self._made[value] = _made(value)
        if isinstance(made.key, int):
            return exactly(Size(made.key))
        known = self._known(self, made.key)
        if known is not None:
            return known
        if not made.name:
            return self._iteration(value, depth)
        if made.name == "tensor.dim":
            return Range(Size(0), None)
        rule = _RULES.get(made.name) if depth else None
        return UNKNOWN if rule is None else rule(self, made, depth - 1)

    def _iteration(self, value: ir.Value, depth: int) -> Range:
        """The index of a loop runs from 0 to one less than its bound."""
        owner = value.owner.owner.operation
        if not is_scan(owner) or not depth:
            return UNKNOWN
        bound = self.range(owner.operands[0], depth - 1).high
        return Range(Size(0), None if bound is None else bound - 1)

    def holds(self, value: ir.Value, depth: int = _DEPTH) -> bool | None:
        """True if an i1 value is true; None if that is not known. Raises Split."""
        op = definition(value)
        if op is None or not depth:
            return None
        if op.name in CONSTANTS:
            return bool(op.attributes["value"].value)
        if op.name == "arith.cmpi":
            return self._compare(op, depth - 1)
        if op.name in ("arith.andi", "arith.ori"):
            absorbing = op.name == "arith.ori"
            sides = [self.holds(x, depth - 1) for x in op.operands]
            if absorbing in sides:
                return absorbing
            return None if None in sides else not absorbing
        return None

    def _compare(self, op: ir.Operation, depth: int) -> bool | None:
        predicate = predicate_of(op)
        a, b = op.operands
        if predicate < 2:
            if self._nonzero is not None and key_of(b) == 0 and same_size(a, self._nonzero):
                return bool(predicate)
            difference = self._difference(self.range(a, depth), self.range(b, depth))
            equal = self._is_zero(difference)
            return None if equal is None else equal != bool(predicate)
        if predicate > 5:
            return None
        if predicate in (3, 4):  # a <= b is not b < a; a > b is b < a
            a, b = b, a
        less = self._is_negative(self._difference(self.range(a, depth), self.range(b, depth)))
        return None if less is None else less != (predicate in (3, 5))

    def _difference(self, a: Range, b: Range) -> Range:
        return combine(a, b, -1)

    def _is_negative(self, d: Range) -> bool | None:
        if d.exact is not None:
            return is_negative(d.exact, self.region)
        most = None if d.high is None else self.region.most(d.high)
        least = None if d.low is None else self.region.least(d.low)
        if most is not None and most < 0:
            return True
        return False if least is not None and least >= 0 else None

    def _is_zero(self, d: Range) -> bool | None:
        if d.exact is not None:
            negative = is_negative(d.exact, self.region)
            return not negative and is_negative(d.exact - 1, self.region)
        positive = self._is_negative(combine(exactly(Size(0)), d, -1))
        return False if positive or self._is_negative(d) else None

    def extreme(self, a: Range, b: Range, sign: int) -> Range:
        """Bounds of the larger (sign 1) or smaller (sign -1) of two values."""
        if a.exact is not None and b.exact is not None:
            return a if is_negative(a.exact - b.exact, self.region) == (sign < 0) else b
        if sign < 0:
            return Range(self._lesser(a.low, b.low), self._lesser(a.high, b.high, either=True))
        return Range(self._lesser(a.low, b.low, -1, True), self._lesser(a.high, b.high, -1))

    def _lesser(self, f: Size | None, g: Size | None, sign: int = 1, either: bool = False) -> Size | None:
        """The smaller (or with sign -1 larger) function; with `either`, one bound is enough."""
        if f is None or g is None:
            return (f or g) if either else None
        d = f - g
        least, most = self.region.least(d), self.region.most(d)
        if most is not None and most <= 0:
            return f if sign > 0 else g
        if least is not None and least >= 0:
            return g if sign > 0 else f
        return f if either else None

    def hull(self, a: Range, b: Range) -> Range:
        """Bounds that hold for both values."""
        return Range(self._lesser(a.low, b.low), self._lesser(a.high, b.high, -1))


def combine(a: Range, b: Range, factor: int) -> Range:
    """Bounds of `a + factor * b`."""
    low, high = (b.low, b.high) if factor >= 0 else (b.high, b.low)
    return Range(
        None if a.low is None or low is None else a.low + factor * low,
        None if a.high is None or high is None else a.high + factor * high,
    )


# -- rules ---------------------------------------------------------------------------------------------------


def _sum(e: Evaluator, op: Made, depth: int) -> Range:
    a, b = (e.range(x, depth) for x in op.operands)
    return combine(a, b, -1 if op.name == "arith.subi" else 1)


def _product(e: Evaluator, op: Made, depth: int) -> Range:
    a, b = (e.range(x, depth) for x in op.operands)
    if a.exact is not None and a.exact.slope == 0:
        a, b = b, a
    if b.exact is None or b.exact.slope:
        return UNKNOWN
    return combine(exactly(Size(0)), a, b.exact.constant)


def _quotient(e: Evaluator, op: Made, depth: int) -> Range:
    """Of a number that is not negative and a positive constant, rounded down."""
    a, b = (e.range(x, depth) for x in op.operands)
    divisor = None if b.exact is None or b.exact.slope else b.exact.constant
    least = None if a.low is None else e.region.least(a.low)
    if divisor is None or divisor < 1 or least is None or least < 0:
        return UNKNOWN
    if a.exact is not None and a.exact.slope == 0:
        return exactly(Size(a.exact.constant // divisor))
    return Range(Size(least // divisor), a.high)


def _extreme(e: Evaluator, op: Made, depth: int) -> Range:
    a, b = (e.range(x, depth) for x in op.operands)
    return e.extreme(a, b, 1 if op.name == "arith.maxsi" else -1)


def _select(e: Evaluator, op: Made, depth: int) -> Range:
    condition, a, b = op.operands
    holds = e.holds(condition, depth)
    if holds is None:
        return e.hull(e.range(a, depth), e.range(b, depth))
    return e.range(a if holds else b, depth)


_RULES: dict[str, Callable[[Evaluator, Made, int], Range]] = {
    "arith.addi": _sum,
    "arith.subi": _sum,
    "arith.muli": _product,
    "arith.divsi": _quotient,
    "arith.floordivsi": _quotient,
    "arith.minsi": _extreme,
    "arith.maxsi": _extreme,
    "arith.select": _select,
    "arith.index_cast": lambda e, op, depth: e.range(op.operands[0], depth),
}
