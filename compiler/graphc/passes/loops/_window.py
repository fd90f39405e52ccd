# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The window of a state: which older rows an iteration can read and write."""

from __future__ import annotations

from graphc.ir.scan_view import ScanView, collect, name_of, redeclared, retention, tap_of, taps_of, writes_of
from graphc.ir.views import take_rows
from graphc_dialects._base import const_index
from graphc_dialects._mlir import ir


def shrink(view: ScanView) -> dict[str, int]:
    """Drops rows of the windows that nothing reads, and rows that are written for nobody.

    Returns:
        Numbers of taps and writes that were dropped, and of states that became outputs.
    """
    counts: dict[str, int] = {}
    for name, carry in view.carries().items():
        read = {tap_of(op) for op in view.reads(name)}
        traced = bool(view.traces(name))
        carry, dropped = _drop_writes(carry, read, traced)
        _add(counts, "writes removed", dropped)
        if traced and not read and _as_output(carry):
            _add(counts, "states turned into outputs", 1)
            continue
        _add(counts, "taps removed", _drop_taps(view, carry, read, traced))
    return counts


def _add(counts: dict[str, int], kind: str, number: int) -> None:
    if number:
        counts[kind] = counts.get(kind, 0) + number


def _drop_writes(carry: ir.Operation, read: set[int], traced: bool) -> tuple[ir.Operation, int]:
    """Drops writes of older rows that no later iteration reads and no trace keeps."""
    writes = writes_of(carry)
    keep, rows = retention(carry)
    visible = 0 if not traced else rows if keep == "last" else None
    if visible is None:
        return carry, 0
    oldest = min(read, default=0)
    kept = [write for write in writes if write == 0 or oldest < write or -write < visible]
    if kept == writes:
        return carry, 0
    initial, *values = carry.operands
    values = [value for write, value in zip(writes, values, strict=True) if write in kept]
    return redeclared(carry, [initial, *values], writes=kept), len(writes) - len(kept)


def _as_output(carry: ir.Operation) -> bool:
    """Makes a state that nothing reads an output."""
    if writes_of(carry) != [0] or retention(carry)[0] != "steps":
        return False
    value = carry.operands[1]
    if not value.type.has_static_shape:
        return False  # the size of a row is known from the initial ones only
    with ir.InsertionPoint(carry), carry.location:
        collect(value, name_of(carry))
    carry.erase()
    return True


def _drop_taps(view: ScanView, carry: ir.Operation, read: set[int], traced: bool) -> int:
    taps, writes = taps_of(carry), writes_of(carry)
    oldest = min(*read, writes[0] - 1, -1) if read else min(writes[0] - 1, -1)
    keep, rows = retention(carry)
    if traced and (keep == "all" or (rows is not None and rows > -oldest)):
        oldest = taps[0]
    wanted = sorted(read | {oldest})
    if wanted == taps:
        return 0
    initial, *values = carry.operands
    if oldest != taps[0]:
        with ir.InsertionPoint(view.op), carry.location:
            initial = newest_rows(initial, -taps[0], -oldest)
    redeclared(carry, [initial, *values], taps=wanted)
    return len(taps) - len(wanted) + (oldest not in taps)


def newest_rows(stack: ir.Value, have: int, count: int) -> ir.Value:
    """The last `count` of `have` rows, at the current insertion point."""
    return take_rows(stack, count, (const_index(have - count), const_index(count), const_index(1)))
