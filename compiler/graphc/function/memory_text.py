# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A memory plan as text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from graphc.function.budget import human, more

if TYPE_CHECKING:
    from graphc.function.memory_plan import MemoryPlan, PlannedBuffer


def text(plan: MemoryPlan) -> str:
    """See `MemoryPlan`."""
    rows = [_row(i, buffer) for i, buffer in enumerate(plan.buffers)]
    lines = [_summary(plan)]
    if rows:
        rows.insert(0, ("", "place", "type", "bytes", "offset", "steps", "from"))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines += ["  " + _columns(row, widths) for row in rows]
    lines += _again(plan)
    for copy in plan.copies:
        size = "" if copy.bytes is None else f" of {human(copy.bytes)}"
        lines.append(
            f"  copy{size} at step {copy.step}, {copy.source} to {copy.target}: {copy.why}"
            f"{_origin(copy.op, copy.location)}"
        )
    return "\n".join(lines)


def _again(plan: MemoryPlan) -> list[str]:
    """Lines about what is computed again to keep to the budget."""
    if plan.budget is None:
        return []
    lines = [f"  {budget(plan)}"]
    for value in plan.recomputed:
        times = "" if value.times == 1 else f" {value.times} times"
        lines.append(
            f"  computed again{times}: {human(value.bytes)}, {value.flops:,} operations"
            f"{_origin(value.op, value.location)}"
        )
    return lines


def budget(plan: MemoryPlan) -> str:
    """One line about the budget of a plan."""
    count = len(plan.recomputed)
    if not count:
        return f"budget {human(plan.budget)}: nothing is computed again"
    values = "1 value is" if count == 1 else f"{count} values are"
    return f"budget {human(plan.budget)}: {values} computed again, with {more(plan.extra_flops)}"


def short(location: str) -> str:
    """A location with the file's path as short as it can be."""
    file, colon, rest = location.partition(":")
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return (file if relative.startswith("..") else relative) + colon + rest


def kind(buffer: PlannedBuffer) -> str:
    """dtype and shape."""
    return f"{buffer.dtype} ({', '.join(map(str, buffer.shape))})"


def _summary(plan: MemoryPlan) -> str:
    count = sum(buffer.place == "workspace" for buffer in plan.buffers)
    if not plan.buffers:
        return f"memory plan of {plan.name}: no intermediate buffers"
    if not count:
        return f"memory plan of {plan.name}: no workspace"
    blocks = "one workspace" if len(plan.workspaces) == 1 else f"{len(plan.workspaces)} workspaces"
    head = f"memory plan of {plan.name}: {count} buffers in {blocks}"
    if plan.peak is None:
        return f"{head}; give shapes to see bytes: f.memory_plan(x, ...) or f.memory_plan((3, 4), ...)"
    used, total = human(plan.alive), human(plan.total)
    return f"{head}, peak {human(plan.peak)}, at most {used} in use, {total} without reuse"


def _columns(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(number: int, buffer: PlannedBuffer) -> tuple[str, ...]:
    place = buffer.place if not buffer.workspace else f"{buffer.place} {buffer.workspace}"
    offset = "" if buffer.place != "workspace" else "?" if buffer.offset is None else str(buffer.offset)
    steps = f"{buffer.first}-{buffer.last}" if buffer.last > buffer.first else str(buffer.first)
    size = "?" if buffer.bytes is None else str(buffer.bytes)
    origin = _origin(buffer.op, buffer.location).removeprefix(", from ")
    return (f"{number}", place, kind(buffer), size, offset, steps, origin)


def _origin(op: str, location: str) -> str:
    if not op:
        return ""
    return f", from {op}" + (f" at {short(location)}" if location else "")
