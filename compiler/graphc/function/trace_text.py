# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces as text, and in Chrome's format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphc.function.trace import Trace, TraceEvent

_HEADER = ("thunk", "runs", "total us", "mean us", "bytes", "kind", "op", "line")
_LEFT = ("kind", "op", "line")
# Longer lists of ops are cut.
_WIDTH = 60


def table(trace: Trace) -> str:
    """A line for each thunk, in the order in which they first ran."""
    count, calls = len(trace.events), len(trace.calls)
    in_thunks = sum(event.duration for event in trace.events if not event.iterations)
    name = trace.calls[0].name if calls else "nothing"
    in_calls = sum(call.duration for call in trace.calls)
    head = (
        f"trace of {name}: {calls} call{'s' * (calls != 1)} in {_us(in_calls)} us, "
        f"{count} runs of thunks, {_us(in_thunks)} us in them"
    )
    runs: dict[int, list[TraceEvent]] = {}
    for event in trace.events:
        runs.setdefault(event.thunk, []).append(event)
    first = {number: min(event.start for event in events) for number, events in runs.items()}
    rows = [_row(number, runs[number]) for number in sorted(runs, key=first.__getitem__)]
    widths = [max(map(len, column)) for column in zip(_HEADER, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if title in _LEFT else cell.rjust(width)
            for cell, width, title in zip(row, widths, _HEADER, strict=True)
        ).rstrip()
        for row in (_HEADER, *rows)
    ]
    return "\n".join([head, *(lines if rows else [])])


def _row(number: int, events: list[TraceEvent]) -> tuple[str, ...]:
    event = events[0]
    total = sum(each.duration for each in events)
    what = event.op if len(event.op) <= _WIDTH else f"{event.op[: _WIDTH - 3]}..."
    if event.iterations:
        what = f"in {event.iterations[-1].loop}: {what}"
    errors = {each.error: None for each in events if each.error}
    what += "".join(f" (raised {error})" for error in errors)
    return (
        str(number),
        str(len(events)),
        _us(total),
        _us(total / len(events)),
        str(sum(each.bytes for each in events)),
        "native" if event.native else "python",
        what,
        event.line,
    )


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.1f}"


def chrome(trace: Trace) -> dict[str, Any]:
    """Complete events ("X") for calls and thunks, in microseconds."""
    process = os.getpid()
    events: list[dict[str, Any]] = [
        _event(call.name, "call", call.start, call.duration, process, call.thread) for call in trace.calls
    ]
    for event in trace.events:
        kind = "native" if event.native else "python"
        entry = _event(event.name, kind, event.start, event.duration, process, event.thread)
        entry["args"] = {"ops": event.op, "line": event.line, "bytes": event.bytes, "order": event.order}
        if event.iterations:
            entry["args"]["iteration"] = ", ".join(map(str, event.iterations))
        if event.asked:
            entry["args"]["asked for inputs"] = list(event.asked)
        if event.error:
            entry["args"]["error"] = event.error
        events.append(entry)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _event(name: str, kind: str, start: int, duration: int, process: int, thread: int) -> dict[str, Any]:
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start / 1e3,
        "dur": duration / 1e3,
        "pid": process,
        "tid": thread,
    }
