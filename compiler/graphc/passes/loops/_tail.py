# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of which only rows from some iteration on are read, as two loops, one after the other.

Of `h[-m:]` and `h[k:]` it is known in the call how many rows there are, and a window has a static number of
rows. So the iterations whose rows nobody reads are a loop of their own, which keeps what its states need. The
second loop starts from that, and all of its rows are read.
"""

from __future__ import annotations

from typing import Any

from graphc.ir.affine import key_of
from graphc.ir.build import cast
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    name_of,
    retention,
    row_shape,
    set_retention,
    take_trace,
    window_of,
    writes_of,
)
from graphc.ir.value import as_index, larger, smaller
from graphc.ir.views import TAKES_PART, bounds_of
from graphc.passes.loops._consumers import Consumer, Length, Unknowns, set_rows, takes_whole
from graphc.passes.loops._move_up import move_up
from graphc_dialects._mlir import ir


def split_before_tail(view: ScanView, unknowns: Unknowns) -> bool:
    """Makes a loop two, if rows from some iteration on are read and it is not known from which one.

    Args:
        view: the scan; its retention is decided. It becomes the second loop.
        unknowns: see `Length`.

    Returns:
        Whether there are two loops.
    """
    if view.stop is not None or view.reverse:
        return False
    readers = _readers(view, unknowns)
    starts = list(dict.fromkeys(reader.start for reader in readers))
    if not starts or not move_up(starts, view.op):
        return False
    is_only = len(readers) == 1 and len(view.traces()) == 1
    is_only = is_only and move_up(bounds_of(readers[0].op)[0][1:2], view.op)
    with ir.InsertionPoint(view.op), view.op.location:
        first = starts[0]
        for start in starts[1:]:
            first = smaller(first, start)
        first = smaller(larger(first, 0), view.steps)
        # A slice that is all that is read has as many rows as it says: no others are computed.
        left = bounds_of(readers[0].op)[0].size if is_only else view.steps - first
        view.count_steps_as(view.steps)
        rows = _first_loop(view, first)
        view.op.operands[0] = as_index(left)
    _continue_from(view, first, rows)
    for trace in view.traces():
        if retention(view.declarations()[name_of(trace)])[0] == "steps":
            set_rows(trace, -1)
    for reader in readers:
        with ir.InsertionPoint(reader.op), reader.op.location:
            reader.move(as_index(0 if len(starts) == 1 else larger(reader.start - first, 0)))
    if is_only:
        _use_whole(readers[0])
    return True


def _readers(view: ScanView, unknowns: Unknowns) -> list[Consumer]:
    """The slices that read rows from an unknown iteration on; none if a loop must stay as it is."""
    length, declared = Length(view, unknowns), view.declarations()
    found: list[Consumer] = []
    for name, uses in length.consumers.items():
        declaration = declared[name]
        keep, rows = retention(declaration)
        if writes_of(declaration) != [0] or is_padded(declaration):
            return []
        if keep == "last" and (rows or 0) <= window_of(declaration):
            continue
        if keep == "all" and window_of(declaration) and uses:
            return []
        for reader in uses:
            if (
                keep == "last"
                or reader.op.name not in TAKES_PART
                or not _is_unknown(reader, length, declaration)
            ):
                return []
        found += uses
    return found


def _is_unknown(reader: Consumer, length: Length, declaration: ir.Operation) -> bool:
    """True if a slice reads consecutive rows, and may leave out any number of them before these."""
    if reader.consecutive is None or not isinstance(reader.start, ir.Value):
        return False
    if isinstance(key_of(reader.start), int):
        return False
    seen = reader.seen(length, declaration)
    return seen is not None and any(
        rows.offset is None or rows.region.most(rows.offset) is None for rows in seen
    )


def _first_loop(view: ScanView, steps: ir.Value) -> dict[str, ir.Value]:
    """A copy of a loop, for the first iterations; returns the last rows of its states."""
    copy = view.op.clone()
    copy.operands[0] = as_index(steps)
    first = ScanView(copy)
    for output in first.collects().values():
        output.erase()
    rows: dict[str, ir.Value] = {}
    for name, carry in first.carries().items():
        window = window_of(carry)
        set_retention(carry, "last", window)
        initial: Any = carry.operands[0].type
        kind = tensor_type([window, *row_shape(carry)], initial.element_type)
        rows[name] = cast(take_trace(first, name, kind), initial)
    return rows


def _continue_from(view: ScanView, first: ir.Value, rows: dict[str, ir.Value]) -> None:
    """Makes a loop start from the last rows of the one before, in iteration `first`."""
    for name, carry in view.carries().items():
        carry.operands[0] = rows[name]
    view.renumber(first)


def _use_whole(reader: Consumer) -> None:
    """Replaces a slice that takes all rows by the trace, if it takes all of each row."""
    op, trace = reader.op, reader.trace
    others = bounds_of(op)[1:]
    if not all(takes_whole(op, trace, axis, bound) for axis, bound in enumerate(others, 1)):
        return
    with ir.InsertionPoint(op), op.location:
        value = cast(trace.results[0], op.results[0].type)
    op.results[0].replace_all_uses_with(value)
    op.erase()
