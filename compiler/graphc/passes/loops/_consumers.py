# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The consumers of a scan's stored results, and which rows each of them can see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from graphc.ir import build
from graphc.ir.affine import (
    UNKNOWN,
    Evaluator,
    Made,
    Range,
    Region,
    X,
    at,
    exactly,
    is_negative,
    key_of,
    over,
    same_size,
)
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import ScanView, counts_steps, name_of, retention, window_of
from graphc.ir.size import Size
from graphc.ir.views import TAKES_PART, TAKES_ROW, Bound, bounds_of, part_of, stack_of_one
from graphc.ir.walk import definition
from graphc_dialects._base import const_index, constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, trace_size

Found = TypeVar("Found")
_TRANSPARENT = frozenset(
    f"arith.{name}" for name in "addi subi muli minsi maxsi select cmpi andi ori".split()
)
_MAX_LEAVES = 32
Key = ir.Value | tuple[ir.Value, int]


class Unknown(NamedTuple):
    """Values that the number of iterations of a scan depends on.

    Attributes:
        base: the key of the one unknown, None if there is none.
        domain: the values that it can have.
        last: the key of the offset of the only row that is read, where as many iterations are run as compute
            it, and by how much it is more than their number. Holds where that row exists, as `Consumer.seen`.
    """

    base: Key | None
    domain: Region
    last: Mapping[Key, int] = MappingProxyType({})


# By the scan's operand.
Unknowns = dict[ir.Value, Unknown]


class Length:
    """The number of iterations of a scan, and what depends on it.

    The unknown of all functions is the one size that the number of iterations is computed from, or the
    number itself if there are several. Facts hold while the scan keeps its operand, its retention and its
    readers: what one question has found out is not asked again.

    Args:
        view: the scan.
        unknowns: what other lengths of the scan have found out by the operand; what comes before a scan does
            not change with what is kept of it.
    """

    def __init__(self, view: ScanView, unknowns: Unknowns | None = None) -> None:
        self.view = view
        self._steps = view.steps
        self._is_while = view.stop is not None
        self._counts = {op.results[0] for op in view.step_counts()}
        self._declared = view.declarations()
        self._first = {op.results[0]: self._declared[name_of(op)] for op in view.traces()}
        self._made: dict[ir.Value, Made] = {}
        self._evaluators: dict[tuple[Region, ir.Value | None], Evaluator] = {}
        unknowns = {} if unknowns is None else unknowns
        if self._steps not in unknowns:
            unknowns[self._steps] = self._unknown()
        self._base, self.domain, self._last = unknowns[self._steps]

    def _unknown(self) -> Unknown:
        bound = key_of(self._steps)
        if self._is_while:
            if not isinstance(bound, int):
                return Unknown(None, Region(0))
            return Unknown(None, Region(min(1, max(bound, 0)), max(bound, 0)))
        leaves = _leaves(self._steps)
        if not leaves:
            return Unknown(None, Region(0, 0))
        if len(leaves) == 1:
            base = leaves.pop()
            found = over(
                Region(),
                lambda r: Evaluator(r, lambda e, k: _x(e) if k == base else None, made=self._made).range(
                    self._steps
                ),
            )
            if found is not None and all(range_.exact is not None for _, range_ in found):
                return Unknown(base, Region(0) if isinstance(base, tuple) else Region())
        return Unknown(bound, Region(0))

    @cached_property
    def consumers(self) -> dict[str, list[Consumer]]:
        """The consumers of each state and output of the scan, by name."""
        found: dict[str, list[Consumer]] = {name: [] for name in self._declared}
        for trace in (rows.owner.operation for rows in self._first):
            for use in trace.results[0].uses:
                found[name_of(trace)].append(Consumer(use.owner.operation, trace, use.operand_number))
        return found

    def known(self, e: Evaluator, key: Any) -> Range | None:
        """Bounds of what the unknown determines, for `Evaluator`."""
        if key in self._counts:
            return self.steps(e)
        if isinstance(key, tuple):
            declared = self._first.get(key[0]) if key[1] == 0 else None
            if declared is not None:
                return self.rows(e, declared)
        if key in self._last:
            return self._last_read(e, self._last[key])
        return _x(e) if self._base is not None and key == self._base else None

    def _last_read(self, e: Evaluator, more: int) -> Range:
        """The offset of the only row that is read: of the last iteration, or among the initial rows."""
        if is_negative(X - 1, e.region):
            return Range(Size(0), Size(more)) if more >= 0 else UNKNOWN
        return exactly(X + more)

    def steps(self, e: Evaluator) -> Range:
        """Iterations that are run."""
        return _x(e) if self._is_while else e.range(self._steps)

    def rows(self, e: Evaluator, declaration: ir.Operation) -> Range:
        """Rows that are kept of a state or output."""
        keep, rows = retention(declaration)
        if keep == "last":
            return exactly(Size(rows or 0))
        steps = self.steps(e)
        head = head_of(declaration)
        return Range(*(f and f + head for f in steps))

    def ask(
        self, question: Callable[[Evaluator, Size], Found | None], nonzero: ir.Value | None = None
    ) -> list[tuple[Region, Found]] | None:
        """Answers for all numbers of iterations (0 or more); None if there are too many or they are unknown.

        Args:
            question: gets an evaluator and the number of iterations; None is no answer.
            nonzero: a size that is taken for granted not to be 0.
        """

        def put(region: Region) -> Found | None:
            new = Evaluator(region, self.known, nonzero, self._made)
            e = self._evaluators.setdefault((region, nonzero), new)
            steps = self.steps(e).exact
            if steps is None or is_negative(steps, region):
                return None
            return question(e, steps)

        answers = over(self.domain, put)
        if answers is None:
            return None
        return [(region, answer) for region, answer in answers if answer is not None]

    def constant(self, value: ir.Value) -> int | None:
        """The number an index value always is."""
        answers = self.ask(lambda e, steps: (e.range(value).exact,))
        numbers = {None if f is None or f.slope else f.constant for _, (f,) in answers or []}
        return numbers.pop() if len(numbers) == 1 else None


def head_of(declaration: ir.Operation) -> int:
    """Initial rows among the rows that are kept (with `"all"` or `"steps"`)."""
    return window_of(declaration) if retention(declaration)[0] == "all" else 0


def _x(e: Evaluator) -> Range:
    start, stop = e.region
    return exactly(Size(start) if start is not None and start == stop else X)


def _leaves(value: ir.Value) -> set[ir.Value | tuple[ir.Value, int]]:
    """Keys of what is not constant in sums, products and extremes."""
    found: set[Any] = set()
    seen: set[object] = set()
    pending = [value]
    while pending and len(found) <= _MAX_LEAVES:
        top = pending.pop()
        if top in seen:
            # Sizes of slices of slices share their parts: their paths are many more than their operations.
            continue
        seen.add(top)
        key = key_of(top)
        if isinstance(key, int):
            continue
        op = definition(top)
        if op is not None and op.name in _TRANSPARENT:
            pending.extend(op.operands)
        else:
            found.add(key)
    return found


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


# Without iterations, the only row a state with one initial row has is the last one.
_ITERATED = Region(1, None)


class LastRowUses:
    """The uses of a state's or output's traces, if they ask for nothing but its last row (and for sizes).

    Args:
        view: the scan.
        name: the state.

    Attributes:
        only: whether that is so, and there is a use.
    """

    def __init__(self, view: ScanView, name: str) -> None:
        self._view = view
        self._declaration = view.declarations()[name]
        self._traces = view.traces(name)
        self._reads: list[ir.Operation] = []
        self._dims: list[tuple[ir.Operation, ir.Value]] = []
        self._slices: list[ir.Operation] = []
        self._sizes: dict[ir.Value, ir.Value | None] = {trace.results[0]: None for trace in self._traces}
        self._bound = None if view.stop is not None else key_of(view.steps)
        self._rows = self._kept_rows()
        self._last = Size(0) if view.reverse else self._rows - 1
        # A trace of one row is that row, whatever uses it.
        whole = self._rows == 1
        self.only = bool(self._traces) and (whole or all(self._visit(t.results[0], []) for t in self._traces))

    def _kept_rows(self) -> Size:
        """Number of rows of the trace, by the number of iterations."""
        keep, rows = retention(self._declaration)
        if rows is not None:
            return Size(rows)
        extra = window_of(self._declaration) if keep == "all" else 0
        return Size(self._bound + extra) if isinstance(self._bound, int) else X + extra

    def _known(self, evaluator: Evaluator, key: ir.Value | tuple[ir.Value, int]) -> Range | None:
        """Sizes that follow from the number of iterations."""
        if self._bound is not None and key == self._bound:
            return exactly(X)
        if isinstance(key, tuple):
            if key[1] != 0 or key[0] not in self._sizes:
                return None
            size = self._sizes[key[0]]
            return exactly(self._rows) if size is None else evaluator.range(size)
        op = definition(key)
        counts = op is not None and counts_steps(op) and op.operands[0] == self._view.op.results[0]
        return exactly(X) if counts else None

    def _is_always(self, values: list[ir.Value], wanted: Size) -> bool:
        """True if the sum of index values is a function of the number of iterations, if there are any."""

        def ask(region: Region) -> bool:
            evaluator = Evaluator(region, self._known)
            total = Size()
            for value in values:
                found = evaluator.range(value).exact
                if found is None:
                    return False
                total += found
            # At a single point functions that differ may agree.
            point = region.start if region.start is not None and region.start == region.stop else None
            return total == wanted if point is None else at(total, point) == at(wanted, point)

        answers = over(_ITERATED, ask)
        return answers is not None and all(found for _, found in answers)

    def _visit(self, value: ir.Value, offsets: list[ir.Value]) -> bool:
        """True if all users of the rows that start at the sum of the offsets are fine."""
        for use in list(value.uses):
            op = use.owner.operation
            if op.name == "tensor.dim":
                if constant_value(op.operands[1]) is None:
                    return False
                self._dims.append((op, value))
            elif (op.name in TAKES_PART or op.name in TAKES_ROW) and use.operand_number == 0:
                if not self._visit_rows(op, offsets):
                    return False
            else:
                return False
        return True

    def _visit_rows(self, op: ir.Operation, offsets: list[Any]) -> bool:
        offsets = [*offsets, op.operands[1]]
        is_one = op.name in TAKES_ROW or op.results[0].type.shape[0] == 1
        bounds = [] if is_one else bounds_of(op)
        if is_one or self._is_always([bounds[0].size], Size(1)):
            self._reads.append(op)
            return self._is_always(offsets, self._last)
        if not self._keeps_rows_whole(op, bounds):
            return False
        self._sizes[op.results[0]] = bounds[0].size
        self._slices.append(op)
        return self._visit(op.results[0], offsets)

    def _keeps_rows_whole(self, op: ir.Operation, bounds: list[Bound]) -> bool:
        """True if a slice selects whole rows, one after the other."""
        if constant_value(bounds[0].stride) != 1:
            return False
        return all(
            (op.operands[0].type.shape[axis] < 0 and self._is_size_of_rows(bound, axis))
            or takes_whole(op, self._traces[0], axis, bound)
            for axis, bound in enumerate(bounds[1:], 1)
        )

    def _is_size_of_rows(self, bound: Bound, axis: int) -> bool:
        """True if a slice takes all along an axis, by the size of rows that are looked at."""
        size = bound.size.owner
        if isinstance(size, ir.Block) or size.name != "tensor.dim" or size.operands[0] not in self._sizes:
            return False
        whole = constant_value(size.operands[1]) == axis
        return whole and constant_value(bound.offset) == 0 and constant_value(bound.stride) == 1

    def replace(self, row: ir.Value) -> None:
        """Gives all uses the last row, and sizes without the trace; the current insertion point is before
        all of them.
        """
        for op, value in self._dims:
            op.results[0].replace_all_uses_with(self._size(value, constant_value(op.operands[1]) or 0))
            op.erase()
        stack = stack_of_one(row)
        for op in self._reads:
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(self._read(op, stack, row))
            op.erase()
        for op in reversed(self._slices):
            op.erase()
        for trace in self._traces:
            if next(trace.results[0].uses, None) is not None:
                trace.results[0].replace_all_uses_with(build.cast(stack, trace.results[0].type))
            trace.erase()

    def _size(self, value: ir.Value, axis: int) -> ir.Value:
        size = self._sizes[value]
        if axis == 0 and size is not None:
            return size
        return trace_size(self._traces[0], axis)

    def _read(self, op: ir.Operation, stack: ir.Value, row: ir.Value) -> ir.Value:
        if op.name in TAKES_ROW:
            return build.cast(row, op.results[0].type)
        (_, size, _), *others = bounds_of(op)
        # The size stays: it is 1, or 0 where there is no iteration.
        return part_of(stack, [(const_index(0), size, const_index(1)), *others], op.results[0].type)
