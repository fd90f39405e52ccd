# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs fewer iterations where the rows of the later ones are never seen."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from graphc.ir.affine import key_of
from graphc.ir.build import predicate_of
from graphc.ir.scan_view import ScanView, is_read, name_of, retention, writes_of
from graphc.ir.size import Size
from graphc.ir.value import as_index, larger, number, smaller
from graphc.passes.loops._consumers import Consumer, Seen, consumers, set_rows
from graphc.passes.loops._length import Length, head_of
from graphc.passes.loops._move_up import move_up
from graphc_dialects._mlir import ir
from graphc_dialects.check import has_checks
from graphc_runtime.record import record

_DEPTH = 12


@record()
class _Needs:
    """How many iterations consumers need: the largest of these.

    Attributes:
        count: a number.
        less: so many fewer than are run, None if nobody needs as many.
        ends: offset and size of slices of rows; the iterations that compute them are needed.
    """

    count: int = 0
    less: int | None = None
    ends: list[tuple[Any, Any, int]] = field(default_factory=list)


def shorten(view: ScanView) -> bool:
    """Reduces the number of iterations to what consumers see; returns whether that makes a difference.

    All consumers must read what the first iterations compute. A scan with a condition is left alone: how
    often it runs is a result of its own. So is one with checks, which are made in every iteration.
    """
    if view.stop is not None or has_checks(view.op):
        return False
    length, declared, needs = Length(view), view.declarations(), _Needs()
    found = consumers(length)
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
        for count in view.step_counts():
            count.results[0].replace_all_uses_with(view.steps)
            count.erase()
        _set_steps(view, fewer, everybody)
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
    return _add_end(needs, consumer, length, head - extra)


def _needed(rows: Seen, head: int, reverse: bool) -> Size:
    """How many iterations compute rows for the first time that are seen."""
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
    if not view.reverse or number(shift) == 0:
        return
    for consumer in everybody:
        with ir.InsertionPoint(consumer.op), consumer.op.location:
            consumer.move(as_index(larger(consumer.start - shift, 0)))
    uses = [(use.owner.operation, use.operand_number) for use in view.index.uses]
    uses = [(op, position) for op, position in uses if not is_read(op)]
    if uses:
        with ir.InsertionPoint.at_block_begin(view.block), view.op.location:
            index = view.index + shift
        for op, position in uses:
            op.operands[position] = index


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
    """How an index value is computed, equal for equal computations."""
    key, owner = key_of(value), value.owner
    if key is not value or isinstance(owner, ir.Block) or not depth:
        return key
    op = owner.operation
    if not op.name.startswith("arith."):
        return key
    predicate = (predicate_of(op),) if "predicate" in op.attributes else ()
    return (op.name, *predicate, *(_structure(x, depth - 1) for x in op.operands))
