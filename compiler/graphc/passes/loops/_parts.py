# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces as parts of other traces."""

from __future__ import annotations

from typing import Any

from graphc.ir.build import cast
from graphc.ir.rewrite import tensor_type
from graphc.ir.scan_view import (
    ScanView,
    is_padded,
    is_state,
    name_of,
    retention,
    row_shape,
    take_trace,
    taps_of,
)
from graphc.ir.views import create_here, take_rows
from graphc_dialects._base import const_index, dim_of
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record(frozen=True)
class Part:
    """Rows of a trace in the order of time: without some at the front and the back, or only the last.

    Attributes:
        front: number of oldest rows that are dropped.
        back: number of newest rows that are dropped.
        last: keep this many of the newest instead.
    """

    front: int = 0
    back: int = 0
    last: int | None = None


def kept_rows(declaration: ir.Operation) -> tuple[str, int]:
    """What is kept (all rows of an output have one name here), and the number of rows for `last`."""
    keep, rows = retention(declaration)
    if keep == "all" and not is_state(declaration):
        keep = "steps"
    return keep, rows or 0


def part_of_same(have: ir.Operation, want: ir.Operation) -> Part | None:
    """What a declaration keeps as part of what another one of the same rows keeps, or None."""
    (keep, rows), (wanted, count) = kept_rows(have), kept_rows(want)
    if (keep, rows, is_padded(have)) == (wanted, count, is_padded(want)):
        return Part()
    if is_padded(have) or is_padded(want):
        return None
    if keep == "all":
        return Part(front=-taps_of(have)[0]) if wanted == "steps" else Part(last=count)
    if wanted == "last" and (rows >= count if keep == "last" else not is_state(have)):
        return Part(last=count)
    return None


def part_of_state(carry: ir.Operation, collect: ir.Operation, tap: int) -> Part | None:
    """What an output keeps as part of what a state keeps, if it collects its rows at a tap (0: the new)."""
    (keep, _), (wanted, count) = kept_rows(carry), kept_rows(collect)
    window = -taps_of(carry)[0]
    if keep == "last" or (keep == "steps" and tap) or is_padded(collect):
        return None
    front = window + tap if keep == "all" else 0
    if wanted == "steps":
        return Part(front=front, back=-tap)
    return Part(last=count) if tap == 0 else None


def take_part(view: ScanView, source: str, part: Part, type_: ir.Type) -> ir.Value:
    """A part of what is kept under a name, directly after the scan.

    Args:
        view: the scan.
        source: a state or output.
        part: its rows that are wanted.
        type_: type of the result.
    """
    with ir.InsertionPoint.after(view.op), view.op.location:
        declaration = view.declarations()[source]
        _, rows = retention(declaration)
        dynamic = ir.ShapedType.get_dynamic_size()
        element = type_.element_type
        whole = tensor_type([dynamic if rows is None else rows, *row_shape(declaration)], element)
        trace = take_trace(view, source, whole)
        if part == Part():
            return cast(trace, type_)
        return cast(_slice(trace, part, view.reverse), type_)


def _slice(trace: ir.Value, part: Part, reverse: bool) -> ir.Value:
    rows = dim_of(trace, 0)
    if part.last is not None:
        size, static = const_index(part.last), part.last
        first = const_index(0) if reverse else _minus(rows, size)
    else:
        size, static = _minus(rows, const_index(part.front + part.back)), -1
        first = const_index(part.back if reverse else part.front)
    return take_rows(trace, static, (first, size, const_index(1)))


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return create_here("arith.subi", [a, b], ir.IndexType.get())


def replace_traces(view: ScanView, name: str, source: str, part: Part) -> int:
    """Takes the traces of a state or output from another one; returns how many there were."""
    traces = view.traces(name)
    for trace in traces:
        trace.results[0].replace_all_uses_with(take_part(view, source, part, trace.results[0].type))
        trace.erase()
    return len(traces)


def merge_equal_traces(view: ScanView) -> int:
    """Replaces traces that take the same rows by the first of them; returns how many were replaced."""
    first: dict[Any, Any] = {}
    merged = 0
    for trace in view.traces():
        key = (name_of(trace), trace.results[0].type)
        other = first.setdefault(key, trace)
        if other == trace or other.block != trace.block:
            continue
        if trace.is_before_in_block(other):
            first[key], trace, other = trace, other, trace
        trace.results[0].replace_all_uses_with(other.results[0])
        trace.erase()
        merged += 1
    return merged
