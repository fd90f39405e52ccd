# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The consumers of a scan's stored results, and which rows each of them can see."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphc.ir.affine import Evaluator, Range, Region, exactly, is_negative, key_of, same_size
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import name_of
from graphc.ir.size import Size
from graphc.ir.views import TAKES_PART, TAKES_ROW, Bound, bounds_of
from graphc.passes.loops._length import Length
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, trace_size

# Operations that read parts of a tensor, whatever is static in its type.
_READERS = frozenset({*TAKES_PART, *TAKES_ROW, "tensor.dim"})
Bounds = list[tuple[Any, Any, Any]]


class Seen(NamedTuple):
    """Rows `low <= row < high` that a consumer reads, out of `total`, for some numbers of iterations.

    `exact` says that the first and the last of them are read, and not only that no others are.
    """

    region: Region
    low: Size
    high: Size
    total: Size
    steps: Size
    offset: Size | None
    exact: bool


class Consumer:
    """One use of a trace.

    Attributes:
        op: the operation that uses it.
        trace: the `scan_trace`.
        start: the row it reads first, None if it may read all rows.
    """

    def __init__(self, op: ir.Operation, trace: ir.Operation, position: int) -> None:
        self.op, self.trace = op, trace
        self.start: Any = None
        self._size: ir.Value | int = 1
        self._stride: ir.Value | int = 1
        if position == 0 and op.name in TAKES_PART:
            self.start, self._size, self._stride = bounds_of(op)[0]
        elif position == 0 and op.name in TAKES_ROW:
            self.start = op.operands[1]

    def seen(self, length: Length, declaration: ir.Operation) -> list[Seen] | None:
        """Values that it reads, for each range of numbers of iterations; None if that is not known.

        Only numbers for which it reads something, and nothing outside of the trace, are considered: reads of
        other rows are preceded by checks that fail.
        """

        def question(e: Evaluator, steps: Size) -> Seen | None:
            total = length.rows(e, declaration).exact
            return None if total is None else self._within(e, steps, total)

        nonzero = None if isinstance(self._size, int) else self._size
        answers = length.ask(question, nonzero)
        return None if answers is None else [answer for _, answer in answers]

    def _within(self, e: Evaluator, steps: Size, total: Size) -> Seen | None:
        size = exactly(Size(1)) if isinstance(self._size, int) else e.range(self._size)
        if size.exact is not None and is_negative(size.exact - 1, e.region):
            return None
        stride = self._stride if isinstance(self._stride, int) else key_of(self._stride)
        if self.start is None or not isinstance(stride, int):
            if is_negative(total - 1, e.region):
                return None
            return Seen(e.region, Size(0), total, total, steps, None, True)
        offset = e.range(self.start)
        low, high = _ends(offset, size, stride)
        for f in (low.exact, high.exact and total - high.exact):
            if f is not None and is_negative(f, e.region):
                return None
        return Seen(
            e.region,
            Size(0) if low.low is None or _nowhere_above(low.low, Size(0), e) else low.low,
            total if high.high is None or _nowhere_above(total, high.high, e) else high.high,
            total,
            steps,
            offset.exact,
            low.exact is not None and high.exact is not None,
        )

    @property
    def consecutive(self) -> tuple[ir.Value, ir.Value | int] | None:
        """Offset and number of the rows, if they are consecutive."""
        stride = self._stride if isinstance(self._stride, int) else key_of(self._stride)
        return None if self.start is None or stride != 1 else (self.start, self._size)

    def move(self, start: ir.Value) -> None:
        """Makes it read from another first row on (an index value)."""
        self.start = start
        self.op.operands[1] = start


def _nowhere_above(f: Size, g: Size, e: Evaluator) -> bool:
    most = e.region.most(f - g)
    return most is not None and most <= 0


def _ends(offset: Range, size: Range, stride: int) -> tuple[Range, Range]:
    """The smallest row read, and the one after the largest."""
    span = [None if f is None else (f - 1) * stride for f in size]
    if stride < 0:
        span.reverse()  # the larger the size, the lower the last row
    last = Range(*(f and g and f + g for f, g in zip(offset, span, strict=True)))
    low, high = (offset, last) if stride > 0 else (last, offset)
    return low, Range(*(f and f + 1 for f in high))


def set_rows(trace: ir.Operation, rows: int) -> None:
    """Gives a trace the type for a number of rows (-1: not static). Users of the whole keep the old type."""
    old = trace.results[0].type
    new = tensor_type([rows, *list(old.shape)[1:]], old.element_type)
    if new == old:
        return
    uses = [(use.owner.operation, use.operand_number) for use in trace.results[0].uses]
    others = [(op, position) for op, position in uses if position or op.name not in _READERS]
    trace.results[0].set_type(new)
    if others:
        with ir.InsertionPoint.after(trace), trace.location:
            whole = ir.Operation.create("tensor.cast", [old], [trace.results[0]]).result
        for op, position in others:
            op.operands[position] = whole


def consumers(length: Length) -> dict[str, list[Consumer]]:
    """The consumers of each state and output of a scan, by name."""
    found: dict[str, list[Consumer]] = {name: [] for name in length.view.declarations()}
    for trace in length.view.traces():
        for use in trace.results[0].uses:
            found[name_of(trace)].append(Consumer(use.owner.operation, trace, use.operand_number))
    return found


def takes_whole(op: ir.Operation, trace: ir.Operation, axis: int, bound: Bound) -> bool:
    """True if a slice of a trace, or of whole rows of it, takes all along another axis than the first."""
    if key_of(bound.offset) != 0 or key_of(bound.stride) != 1:
        return False
    known = op.operands[0].type.shape[axis]
    if known >= 0:
        return bool(key_of(bound.size) == known)
    try:
        with ir.InsertionPoint(op), op.location:
            return same_size(bound.size, trace_size(trace, axis))
    except UnknownSize:
        return False
