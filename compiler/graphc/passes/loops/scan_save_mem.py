# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps only the rows of a scan's results that a consumer can see.

Consumers are made to read results directly instead of through views; fewer iterations run where the rows of
the later ones are never seen.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.ir import build
from graphc.ir.affine import Evaluator, Region, at, is_negative, key_of
from graphc.ir.build import predicate_of
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.diagnostics import fail
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    name_of,
    retention,
    scans,
    set_retention,
    window_of,
    writes_of,
)
from graphc.ir.size import Size
from graphc.ir.value import as_index, larger, smaller
from graphc.ir.views import (
    GATHERS,
    MOVES_AXES,
    TAKES_PART,
    TAKES_ROW,
    axes_order,
    axis_of,
    bounds_of,
    dimshuffle,
    order_of,
    part_of,
)
from graphc.ir.walk import definition
from graphc.passes import Pass
from graphc.passes.loops._consumers import (
    Bounds,
    Consumer,
    Key,
    Length,
    Seen,
    Unknown,
    Unknowns,
    head_of,
    set_rows,
    takes_whole,
)
from graphc.passes.loops._move_up import move_up, operations_after
from graphc.passes.loops._tail import split_before_tail
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.check import has_checks, raises
from graphc_dialects.scan_shapes import UnknownSize, trace_size
from graphc_runtime.record import record

# A window is carried from iteration to iteration, a pointer for each of its rows.
_MOST_PADDED = 8


class Retention:
    """Retention of one state or output.

    Args:
        length: of the scan; consumers of its traces must have been flattened.
        name: of the state or output.
        unknowns: see `Length`.
    """

    def __init__(self, length: Length, name: str, unknowns: Unknowns) -> None:
        self._view, self._name, self._unknowns, self._length = length.view, name, unknowns, length
        self._declaration = length.view.declarations()[name]
        self._consumers = length.consumers[name]
        self._reverse = length.view.reverse
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
                return self._drop_whole_slices(self._length)
            seen += found
        count = None if initial_only else self._last(seen)
        unseen = self._initial_unseen(seen)
        only_steps = unseen or head_of(self._declaration) == 0
        if count is not None and not (only_steps and self._prefers_steps(count)):
            if self._has(count):
                return self._keep_last(count)
            if count <= _MOST_PADDED and not self._are_all(count):
                return self._keep_last(count, padded=True)
        return self._keep_steps() if unseen else self._drop_whole_slices(self._length)

    # -- what is seen ----------------------------------------------------------------------------------------

    def _last(self, seen: list[Seen]) -> int | None:
        """Number of the most recent rows that are read; None if there is no bound, or if these are
        all rows.
        """
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
        """True if there are that many rows (initial ones included) whenever the scan runs."""
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
        """True if there are never more than so many rows."""
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
        """True if to keep all steps and not some last rows: where these are as many, or need a guarantee."""
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
        return self._drop_whole_slices(Length(self._view, self._unknowns))

    def _retype(self) -> None:
        """Gives the traces the type of what is kept."""
        keep, rows = retention(self._declaration)
        count = rows if rows is not None else key_of(self._view.steps)
        if self._view.stop is not None and keep != "last":
            count = None
        for trace in self._view.traces(self._name):
            set_rows(trace, count if isinstance(count, int) else -1)

    def _drop_whole_slices(self, length: Length) -> list[str]:
        """Replaces slices that take all of a trace by it."""
        events = []
        for consumer in length.consumers[self._name]:
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
    for name, found in length.consumers.items():
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


# Predicates of arith.cmpi.
_BELOW, _NOT_ABOVE = 2, 3


def flatten(trace: ir.Operation) -> int:
    """Turns slices of views of a trace into slices of the trace, and asks no view for its size.

    A slice of a slice, of a cast or of moved axes becomes one slice, and so does a `take` of one row at a
    constant position. Views that nobody uses any more go.

    Returns:
        How many operations changed.
    """
    changed = 0
    pending = [trace.results[0]]
    views: list[ir.Operation] = []
    while pending:
        view = pending.pop()
        for op in [use.owner.operation for use in view.uses if use.operand_number == 0]:
            if op.name == "tensor.dim":
                changed += _resolve_size(op)
                continue
            if op.name in GATHERS:
                op = _slice_for_take(op) or op
            while op.name in TAKES_PART or op.name in TAKES_ROW:
                closer = _closer(op)
                if closer is None:
                    break
                op, changed = closer, changed + 1
            if op.name in TAKES_PART or op.name in MOVES_AXES or _is_same_rank_cast(op):
                views.append(op)
                pending.append(op.results[0])
    for op in reversed(views):
        if next(op.results[0].uses, None) is None:
            op.erase()
    return changed


def _is_same_rank_cast(op: ir.Operation) -> bool:
    if op.name != "tensor.cast":
        return False
    old, new = op.operands[0].type, op.results[0].type
    return isinstance(old, ir.RankedTensorType) and isinstance(new, ir.RankedTensorType)


def _slice_for_take(take: ir.Operation) -> Any:
    """The slice that takes one row at a constant position, with the check of its bounds; or None."""
    x, indices = take.operands
    rank = len(indices.type.shape)
    known = definition(indices, *CONSTANTS)
    if axis_of(take) or known is None:
        return None
    position = read_constant(known)
    if position is None or position.size != 1:
        return None
    at = int(position.flat[0])
    with ir.InsertionPoint(take), take.location:
        try:
            sizes = [_size(x, axis) for axis in range(len(x.type.shape))]
        except UnknownSize:
            return None
        start = sizes[0] + at if at < 0 else at
        _check_bounds(at, start, sizes[0])
        type_ = take.results[0].type
        row = list(type_.shape)[rank:]
        bounds: Bounds = [(start, 1, 1), *((0, size, 1) for size in sizes[1:])]
        new = _make_slice(x, bounds, tensor_type([1, *row], type_.element_type))
        order = [-1] * (rank - 1) + [0] * min(rank, 1) + list(range(1, len(row) + 1))
        value = dimshuffle(new.results[0], order, type_)
    take.results[0].replace_all_uses_with(value)
    take.erase()
    return new


def _check_bounds(given: int, start: ir.Value | int, size: ir.Value) -> None:
    low, high = (as_index(0), as_index(start)) if given < 0 else (as_index(start), size)
    inside = build.compare_index(_NOT_ABOVE if given < 0 else _BELOW, low, high)
    message = "index {given} is out of bounds for axis 0 of size {expected}"
    build.check(inside, as_index(given), size, message, "IndexError")


def _resolve_size(op: ir.Operation) -> int:
    """Replaces the size of a view of a trace by what it is computed from."""
    axis = key_of(op.operands[1])
    if not isinstance(axis, int):
        return 0
    try:
        with ir.InsertionPoint(op), op.location:
            size = _size(op.operands[0], axis)
    except UnknownSize:
        return 0
    op.results[0].replace_all_uses_with(size)
    op.erase()
    return 1


def _size(value: ir.Value, axis: int) -> ir.Value:
    static = value.type.shape[axis]
    op = value.owner.operation
    if static >= 0:
        return as_index(static)
    if op.name == "tensor.cast":
        return _size(op.operands[0], axis)
    order = order_of(op)
    if order is not None:
        return _size(op.operands[0], order[axis])
    return op.opview.reify(axis, value.result_number)


def _closer(op: ir.Operation) -> ir.Operation | None:
    """The same slice (or row) taken from what its operand is a view of; None if there is nothing to do."""
    source = op.operands[0].owner.operation
    if _is_same_rank_cast(source):
        op.operands[0] = source.operands[0]
        return op
    if op.name not in TAKES_PART or not (source.name in TAKES_PART or source.name in MOVES_AXES):
        return None
    rule = _slice_of_slice if source.name in TAKES_PART else _slice_of_moved_axes
    with ir.InsertionPoint(op), op.location:
        new = rule(op, source)
    if new is None:
        return None
    taken, value = new
    op.results[0].replace_all_uses_with(value)
    op.erase()
    return taken


def _slice_of_slice(op: ir.Operation, source: ir.Operation) -> tuple[ir.Operation, ir.Value]:
    bounds = [
        (o + s * offset, size, s * stride)
        for (o, _, s), (offset, size, stride) in zip(bounds_of(source), bounds_of(op), strict=True)
    ]
    new = _make_slice(source.operands[0], bounds, op.results[0].type)
    return new, new.results[0]


def _slice_of_moved_axes(op: ir.Operation, source: Any) -> tuple[Any, Any] | None:
    """Slices before axes are moved; axes that are inserted must stay whole."""
    x, order, type_ = source.operands[0], axes_order(source), op.results[0].type
    bounds: Bounds = [(0, 1, 1)] * len(x.type.shape)
    shape = [1] * len(x.type.shape)
    for position, (axis, given) in enumerate(zip(order, bounds_of(op), strict=True)):
        if axis >= 0:
            bounds[axis], shape[axis] = given, type_.shape[position]
        elif key_of(given[1]) != 1:
            return None
    new = _make_slice(x, bounds, tensor_type(shape, type_.element_type))
    return new, dimshuffle(new.results[0], order, type_)


def _make_slice(x: ir.Value, bounds: Bounds, type_: ir.Type) -> ir.Operation:
    """A `graphc.slice` at the current insertion point; bounds are index values or ints."""
    values = [(as_index(o), as_index(size), as_index(s)) for o, size, s in bounds]
    return ir.OpResult(part_of(x, values, type_)).owner


_DEPTH = 12


@record()
class _Needs:
    """Numbers of iterations that consumers need: the largest of these.

    Attributes:
        count: a number.
        less: so many fewer than are run, None if nobody needs as many.
        ends: offset and size of slices of rows, and how many rows there are before the first iteration's; the
            iterations that compute them are needed.
        rewritten: True if an iteration writes rows of these again after others.
    """

    count: int = 0
    less: int | None = None
    ends: list[tuple[Any, Any, int]] = field(default_factory=list)
    rewritten: bool = False


def shorten(view: ScanView, unknowns: Unknowns) -> bool:
    """Reduces the number of iterations to what consumers see; returns whether that makes a difference.

    If they all read one row, that is the last one afterwards, whatever its offset is computed from:
    `unknowns` then says so.

    All consumers must read what the first iterations compute. A scan with a condition is left alone: how
    often it runs is a result of its own. So is one with checks, which are made in every iteration.
    """
    if view.stop is not None or has_checks(view.op):
        return False
    length, declared, needs = Length(view, unknowns), view.declarations(), _Needs()
    found = length.consumers
    for name, uses in found.items():
        if uses and retention(declared[name])[0] == "last":
            return False
        if not all(_add_need(needs, consumer, length, declared[name]) for consumer in uses):
            return False
    everybody = [consumer for uses in found.values() for consumer in uses]
    if not everybody or not move_up([x for o, s, _ in needs.ends for x in _values(o, s)], view.op):
        return False
    with ir.InsertionPoint(view.op), view.op.location:
        fewer = _fewer(needs, view.steps, length)
        if fewer in (key_of(view.steps), view.steps):
            return False
        view.count_steps_as(view.steps)
        _set_steps(view, fewer, everybody)
    last = _last_read(needs)
    if last:
        unknowns[view.steps] = Unknown(key_of(view.steps), Region(0), last)
    return True


def _add_need(needs: _Needs, consumer: Consumer, length: Length, declaration: ir.Operation) -> bool:
    """Adds what a consumer needs; False if it needs all iterations, or less is not known."""
    seen = consumer.seen(length, declaration)
    if seen is None or consumer.start is None:
        return False
    # How long after the iteration of a row its last iteration is: rows may be written again.
    extra = -writes_of(declaration)[0]
    head = head_of(declaration)
    needed = [_needed(rows, head, length.view.reverse) + extra for rows in seen]
    spare = [rows.steps - need for rows, need in zip(seen, needed, strict=True)]
    regions = [rows.region for rows in seen]
    most = [region.most(f) for region, f in zip(regions, needed, strict=True)]
    if all(m is not None and m <= 0 for m in most):
        return True
    spare_most = [region.most(f) for region, f in zip(regions, spare, strict=True)]
    if all(rows.exact and m is not None and m <= 0 for rows, m in zip(seen, spare_most, strict=True)):
        return False
    numbers = [m for m in most if m is not None]
    if len(numbers) == len(most):
        needs.count = max(needs.count, *numbers)
        return True
    least = [region.least(f) or 0 for region, f in zip(regions, spare, strict=True)]
    if min(least) > 0:
        needs.less = min(least) if needs.less is None else min(needs.less, *least)
        return True
    needs.rewritten |= extra > 0
    return _add_end(needs, consumer, length, head - extra)


def _needed(rows: Seen, head: int, reverse: bool) -> Size:
    """Number of iterations that compute rows for the first time that are seen."""
    return rows.steps - rows.low if reverse else rows.high - head


def _add_end(needs: _Needs, consumer: Consumer, length: Length, head: int) -> bool:
    """A slice up to a row that is only known at run time."""
    found = consumer.consecutive
    if found is None or length.view.reverse:
        return False
    # The slice's bounds are part of what says how many iterations are run, if this was done before.
    before = _parts(length.view.steps)
    if all(isinstance(x, int) or isinstance(key_of(x), int) or _structure(x) in before for x in found):
        return False
    needs.ends.append((*found, head))
    return True


def _last_read(needs: _Needs) -> dict[Key, int]:
    """Offset of the only row that is read, and how far it is ahead of the iterations that are run for it."""
    if needs.count or needs.less is not None or needs.rewritten:
        return {}
    # The same row of several results is equal arithmetic, and not one value yet.
    rows = {
        (_structure(offset), size if isinstance(size, int) else key_of(size), head)
        for offset, size, head in needs.ends
    }
    if len(rows) != 1 or next(iter(rows))[1] != 1:
        return {}
    return {key_of(offset): head - 1 for offset, _, head in needs.ends}


def _values(*items: ir.Value | int) -> list[ir.Value]:
    return [item for item in items if not isinstance(item, int)]


def _fewer(needs: _Needs, steps: ir.Value, length: Length) -> ir.Value | int:
    """The new number of iterations, an index value or int, at the current insertion point."""
    count: ir.Value | int = needs.count
    if needs.less is not None:
        count = larger(steps - needs.less, count)
        if needs.count == 0 and not needs.ends:
            return _known(count)
    for offset, size, head in needs.ends:
        count = larger(offset + size - head, count)
    count = _known(count)
    if isinstance(count, int):
        enough = length.ask(lambda e, n: (e.region.least(n - count),))
        if enough is not None and all(least is not None and least >= 0 for _, (least,) in enough):
            return count
    return _known(smaller(steps, count))


def _known(count: ir.Value | int) -> ir.Value | int:
    """The number that an index value is, where that is known."""
    key = count if isinstance(count, int) else key_of(count)
    return key if isinstance(key, int) else count


def _set_steps(view: ScanView, fewer: ir.Value | int, everybody: list[Consumer]) -> None:
    """Changes the number of iterations; with `reverse`, the first iteration stays the one it was."""
    shift = view.steps - fewer
    view.op.operands[0] = as_index(fewer)
    rows = key_of(view.steps)
    declared = view.declarations()
    for trace in view.traces():
        set_rows(trace, rows + head_of(declared[name_of(trace)]) if isinstance(rows, int) else -1)
    if not view.reverse or constant_value(shift) == 0:
        return
    for consumer in everybody:
        with ir.InsertionPoint(consumer.op), consumer.op.location:
            consumer.move(as_index(larger(consumer.start - shift, 0)))
    view.renumber(shift)


def _parts(value: ir.Value) -> set[object]:
    """Structures of all that an index value is computed from."""
    found: set[object] = set()

    def visit(structure: object) -> None:
        found.add(structure)
        if isinstance(structure, tuple) and isinstance(structure[0], str):
            for part in structure[1:]:
                visit(part)

    visit(_structure(value))
    return found


def _structure(value: ir.Value, depth: int = _DEPTH) -> Any:
    """Structure of an index value's computation, equal for equal computations."""
    key, op = key_of(value), definition(value)
    if key is not value or op is None or not depth or not op.name.startswith("arith."):
        return key
    predicate = (predicate_of(op),) if "predicate" in op.attributes else ()
    return (op.name, *predicate, *(_structure(x, depth - 1) for x in op.operands))


@record()
class ScanSaveMem(Pass):
    """Keeps of each state and output of a scan only the rows that somebody reads.

    Consumers are followed through slices, casts and moved axes; their offsets, sizes and strides are
    evaluated as piecewise linear functions of the number of iterations, so that what NumPy's rules for
    slices leave (minima, selects) is understood for symbolic lengths too.

    * Nothing but the number of rows is asked for: the result is not kept (`keep = "last"`, 0 rows).
    * Only the last n rows are read (`h[-1]`, `h[-2:]`): `keep = "last"` with n rows, and the consumers'
      offsets are changed. Where neither the number of initial rows, nor the length, nor a check (which is
      then moved before the scan) says that there are n rows, at most 8 are kept, `padded`: zeros, which
      nobody reads, stand for rows that are missing.
    * The initial rows are not read (`h[1:]`): `keep = "steps"`. A slice that takes all of a result goes.
    * A slice of initial rows alone is taken from the initial value.
    * Only rows of the first iterations are read (`h[:10]`, `h[3]`): the scan runs fewer iterations. Not
      with a stop condition, which decides that number itself, or checks, which every iteration makes.
    * A single row is read, wherever it is (`h[n - 3]`, `h[-m]`): it is the last one that is computed.
    * Rows from an iteration on that is known in the call are read (`h[-m:]`, `h[k:]`): the iterations before
      are a scan of their own, which keeps the last rows of its states (see `graphc.passes.loops._tail`).

    Of other readers all rows are kept.

    Options:
        reread: only look at scans of which lift-slices or scan-to-map have changed a reader since then.

    The gradient of a scan reads all rows, so this must not run before differentiation: a scan that is
    marked `differentiable` is refused.

    Source: PyTensor's `scan_save_mem` (`save_mem_new_scan`).
    """

    stage = "graph"
    reread: bool = False

    def run(self, module: ir.Module) -> None:
        found = scans(module.operation)
        for op in found:
            if "differentiable" in op.attributes:
                fail(
                    op,
                    "graphc-scan-save-mem drops rows that the gradient of this scan needs; "
                    "differentiate first, then remove the attribute 'differentiable'",
                )
        for op in found:
            if "reread" in op.attributes or not self.reread:
                self._treat(ScanView(op))
            if "reread" in op.attributes:
                del op.attributes["reread"]

    def _treat(self, view: ScanView) -> None:
        for trace in view.traces():
            flatten(trace)
        unknowns: Unknowns = {}
        self.count("reads of initial rows", use_initial_rows(view, unknowns))
        # Offsets are best understood as functions of the length they were written for: initial rows go before
        # the length changes, and what is left is looked at again.
        self._reduce(view, unknowns, initial_only=True)
        self.count("scans shortened", int(shorten(view, unknowns)))
        self._reduce(view, unknowns)
        self.count("scans split", int(split_before_tail(view, unknowns)))
        for trace in view.traces():
            if next(trace.results[0].uses, None) is None:
                trace.erase()

    def _reduce(self, view: ScanView, unknowns: Unknowns, initial_only: bool = False) -> None:
        length: Length | None = None
        for name in view.declarations():
            length = length or Length(view, unknowns)
            for event in Retention(length, name, unknowns).apply(initial_only):
                self.count(event)
                length = None
