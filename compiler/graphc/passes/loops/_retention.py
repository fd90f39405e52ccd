# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides which rows of a state or output are kept, and adapts its consumers."""

from __future__ import annotations

from typing import Any

from graphc.ir.affine import Evaluator, Region, at, is_negative, key_of
from graphc.ir.scan_view import ScanView, retention, set_retention, window_of, writes_of
from graphc.ir.size import Size
from graphc.ir.value import as_index, larger
from graphc.ir.views import TAKES_PART, bounds_of
from graphc.passes.loops._consumers import Consumer, Seen, consumers, set_rows, takes_whole
from graphc.passes.loops._length import Length, Unknowns, head_of
from graphc.passes.loops._move_up import move_up, operations_after
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.scan_shapes import trace_size

# A window is carried from iteration to iteration, a pointer for each of its rows.
_MOST_PADDED = 8


class Retention:
    """What is kept of one state or output.

    Args:
        view: the scan; consumers of its traces must have been flattened.
        name: of the state or output.
        unknowns: see `Length`.
    """

    def __init__(self, view: ScanView, name: str, unknowns: Unknowns) -> None:
        self._view, self._name, self._unknowns = view, name, unknowns
        self._declaration = view.declarations()[name]
        self._length = Length(view, unknowns)
        self._consumers = consumers(self._length)[name]
        self._reverse = view.reverse
        self._window = window_of(self._declaration)

    def apply(self, initial_only: bool = False) -> list[str]:
        """Keeps less if possible; returns names of what was done, for statistics.

        Args:
            initial_only: only look for initial rows that nobody reads.
        """
        keep, rows = retention(self._declaration)
        if not self._consumers:
            if (keep, rows) == ("last", 0):
                return []
            set_retention(self._declaration, "last", 0)
            self._retype()
            return ["results not kept"]
        seen: list[Seen] = []
        for consumer in self._consumers:
            found = consumer.seen(self._length, self._declaration)
            if found is None or consumer.start is None:
                return self._drop_whole_slices()
            seen += found
        count = None if initial_only else self._last(seen)
        unseen = self._initial_unseen(seen)
        only_steps = unseen or head_of(self._declaration) == 0
        if count is not None and not (only_steps and self._prefers_steps(count)):
            if self._has(count):
                return self._keep_last(count)
            if count <= _MOST_PADDED and not self._are_all(count):
                return self._keep_last(count, padded=True)
        return self._keep_steps() if unseen else self._drop_whole_slices()

    # -- what is seen ----------------------------------------------------------------------------------------

    def _last(self, seen: list[Seen]) -> int | None:
        """How many of the most recent rows are read; None if there is no bound, or if these are all rows."""
        counts = [rows.region.most(rows.high if self._reverse else rows.total - rows.low) for rows in seen]
        numbers = [count for count in counts if count is not None]
        if len(numbers) < len(counts):
            return None
        count = max(numbers, default=1)
        totals = self._length.ask(lambda e, steps: (self._length.rows(e, self._declaration).exact,))
        if totals is not None and all(total == count for _, (total,) in totals):
            return None
        return max(count, 1)

    def _has(self, count: int) -> bool:
        """Whether there are that many rows (initial ones included) whenever the scan runs."""
        keep, rows = retention(self._declaration)
        if count <= (rows or 0 if keep == "last" else self._window):
            return True

        def lacking(e: Evaluator, steps: Size) -> Region | None:
            return e.region if is_negative(steps + (self._window - count), e.region) else None

        found = self._length.ask(lacking)
        if found is None:
            return False
        regions = [region for region, _ in found]
        return not regions or (self._view.stop is None and self._guard(regions))

    def _are_all(self, count: int) -> bool:
        """Whether there are never more than so many rows."""
        most = self._length.ask(lambda e, steps: (self._most_rows(e),))
        return most is not None and all(rows is not None and rows <= count for _, (rows,) in most)

    def _most_rows(self, e: Evaluator) -> int | None:
        high = self._length.rows(e, self._declaration).high
        return None if high is None else e.region.most(high)

    def _guard(self, regions: list[Region]) -> bool:
        """Finds a check that fails for these numbers of iterations, and moves it before the scan."""
        later = operations_after(self._view.op)
        for op in [op.operation for op in self._view.op.block.operations]:
            if not raises(op) or not self._fails(op, regions):
                continue
            if op not in later:
                return True
            if move_up(op.operands, self._view.op):
                op.move_before(self._view.op)
                return True
        return False

    def _fails(self, check: Any, regions: list[Region]) -> bool:
        condition = check.operands[0]

        def question(e: Evaluator, steps: Size) -> tuple[bool | None] | None:
            if not any(_overlap(e.region, region) for region in regions):
                return None
            return (e.holds(condition),)

        answers = self._length.ask(question)
        return answers is not None and all(
            holds is False
            for region, (holds,) in answers
            if any(_overlap(region, other) for other in regions)
        )

    def _prefers_steps(self, count: int) -> bool:
        """Whether to keep all steps and not some last rows: where these are as many, or need a guarantee."""
        spare = self._length.ask(lambda e, steps: (e.region.least(count - steps),))
        if spare is None or any(least is None or least < 0 for _, (least,) in spare):
            return False
        return count > self._window or all(least == 0 for _, (least,) in spare)

    def _initial_unseen(self, seen: list[Seen]) -> bool:
        head = head_of(self._declaration)
        if not head:
            return False
        spare = [
            rows.region.least(rows.steps - rows.high if self._reverse else rows.low - head) for rows in seen
        ]
        return all(least is not None and least >= 0 for least in spare)

    # -- changing it -----------------------------------------------------------------------------------------

    def _keep_steps(self) -> list[str]:
        self._shift(0 if self._reverse else head_of(self._declaration))
        set_retention(self._declaration, "steps")
        return ["initial rows dropped", *self._finish()]

    def _keep_last(self, count: int, padded: bool = False) -> list[str]:
        if not self._reverse:
            self._shift(None, count)
        set_retention(self._declaration, "last", count, padded)
        return ["results cut to their last rows", *self._finish()]

    def _shift(self, by: int | None, count: int = 0) -> None:
        """Takes `by`, or all rows but the last `count`, off the consumers' offsets."""
        if by == 0:
            return
        starts: list[ir.Value | int | None] = [
            self._start(consumer, by, count) for consumer in self._consumers
        ]
        for consumer, start in zip(self._consumers, starts, strict=True):
            with ir.InsertionPoint(consumer.op), consumer.op.location:
                if start is None:
                    rows = by if by is not None else trace_size(consumer.trace, 0) - count
                    start = larger(consumer.start - rows, 0)
                consumer.move(as_index(start))

    def _start(self, consumer: Consumer, by: int | None, count: int) -> int | None:
        """The new offset of a consumer, if it is a number."""
        found = set()
        for rows in consumer.seen(self._length, self._declaration) or []:
            removed = by if by is not None else rows.total - count
            new = None if rows.offset is None else rows.offset - removed
            if new is not None and rows.region.start is not None and rows.region.start == rows.region.stop:
                new = Size(at(new, rows.region.start))
            found.add(new.constant if new is not None and new.slope == 0 else None)
        return found.pop() if len(found) == 1 else None

    def _finish(self) -> list[str]:
        self._retype()
        return self._drop_whole_slices()

    def _retype(self) -> None:
        """Gives the traces the type of what is kept."""
        keep, rows = retention(self._declaration)
        count = rows if rows is not None else key_of(self._view.steps)
        if self._view.stop is not None and keep != "last":
            count = None
        for trace in self._view.traces(self._name):
            set_rows(trace, count if isinstance(count, int) else -1)

    def _drop_whole_slices(self) -> list[str]:
        """Replaces slices that take all of a trace by it."""
        events = []
        length = Length(self._view, self._unknowns)
        for consumer in consumers(length)[self._name]:
            if consumer.op.name in TAKES_PART and self._is_whole(consumer, length):
                value, type_ = consumer.trace.results[0], consumer.op.results[0].type
                if value.type != type_:
                    with ir.InsertionPoint(consumer.op), consumer.op.location:
                        value = ir.Operation.create("tensor.cast", [type_], [value]).result
                consumer.op.results[0].replace_all_uses_with(value)
                consumer.op.erase()
                events.append("slices removed")
        return events

    def _is_whole(self, consumer: Consumer, length: Length) -> bool:
        (offset, size, stride), *others = bounds_of(consumer.op)
        declaration = self._declaration

        def question(e: Evaluator, steps: Size) -> tuple[bool]:
            rows = length.rows(e, declaration).exact
            return (rows is not None and e.range(size).exact == rows and e.range(offset).exact == 0,)

        answers = length.ask(question)
        if answers is None or key_of(stride) != 1 or not all(whole for _, (whole,) in answers):
            return False
        return all(
            takes_whole(consumer.op, consumer.trace, axis, bound) for axis, bound in enumerate(others, 1)
        )


def use_initial_rows(view: ScanView, unknowns: Unknowns) -> int:
    """Takes slices of initial rows alone from the initial value; returns how many."""
    changed = 0
    length = Length(view, unknowns)
    declared = view.declarations()
    for name, found in consumers(length).items():
        carry = declared[name]
        head = head_of(carry)
        if not head or writes_of(carry) != [0] or (view.reverse and head > 1):
            continue
        for consumer in found:
            seen = consumer.seen(length, carry) if consumer.start is not None else None
            if not seen or not all(_is_initial(rows, head, view.reverse) for rows in seen):
                continue
            with ir.InsertionPoint(consumer.op), consumer.op.location:
                if view.reverse:
                    consumer.move(as_index(0))
                consumer.op.operands[0] = carry.operands[0]
            changed += 1
    return changed


def _is_initial(rows: Seen, head: int, reverse: bool) -> bool:
    least = rows.region.least(rows.low - rows.steps if reverse else head - rows.high)
    return least is not None and least >= 0


def _overlap(a: Region, b: Region) -> bool:
    return not (_before(a, b) or _before(b, a))


def _before(a: Region, b: Region) -> bool:
    return a.stop is not None and b.start is not None and a.stop < b.start
