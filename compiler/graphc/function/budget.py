# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``memory_budget=`` of `graphc.function`: its values, and what is said where it cannot be kept to."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypedDict

from graphc import emit
from graphc.errors import MemoryBudgetWarning
from graphc.graph.basic import describe, frames_inside
from graphc.graph.function_graph import FunctionGraph
from graphc.ir.size import Number
from graphc.library.places import Planned, planned_bytes
from graphc_runtime.manifest import Manifest

if TYPE_CHECKING:
    from graphc.ir.plain import Recomputed

# How many of the largest buffers a warning names.
_NAMED = 3


class _Buffer(TypedDict):
    """A buffer in a manifest: its lifetime, bytes, sizes and node."""

    first: int
    last: int
    units: int
    shape: list[int]
    node: str


class _Workspace(Planned):
    """A workspace in a manifest, with its buffers."""

    buffers: list[_Buffer]


def more(flops: int) -> str:
    """Operations done more than before, or fewer."""
    return f"{abs(flops):,} operations {'fewer' if flops < 0 else 'more'}"


def human(size: Number) -> str:
    """A number of bytes for people: `80 B`, `1.5 KiB`."""
    if size is None:
        return "?"
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def tell(fgraph: FunctionGraph, manifest: Manifest, budget: int, name: str) -> list[str]:
    """Lines for a report about what was done to keep to a budget; warns where it is not kept to."""
    again: Recomputed = manifest.extra.get("recomputed", {})
    arrays, unknown = again.get("arrays", []), again.get("unknown", 0)
    lines = []
    if arrays:
        count = f"{len(arrays)} value{'' if len(arrays) == 1 else 's'}"
        lines.append(f"{count} computed again, {more(again.get('flops', 0))}; see f.memory_plan()")
    peak = planned_bytes(manifest.memory)
    if unknown or peak is None:
        lines.append(f"memory_budget of {human(budget)} leaves out values whose sizes only calls know")
        _warn(
            f"{name}: memory_budget counts no values whose sizes only calls know; give their inputs shapes, "
            "as in pt.tensor('x', shape=(512, 256))"
        )
        return lines
    lines.append(f"memory_budget {human(budget)}, peak {human(peak)}")
    if peak > budget:
        _warn(
            f"{name} needs {human(peak)} ({peak} bytes) for intermediate values, the least that was found, "
            f"but memory_budget is {human(budget)} ({budget} bytes); the largest at the peak: "
            f"{_largest(fgraph, manifest)}"
        )
    return lines


def _warn(message: str) -> None:
    warnings.warn(message, MemoryBudgetWarning, stacklevel=frames_inside() + 1)


def _largest(fgraph: FunctionGraph, manifest: Manifest) -> str:
    """The largest buffers of the largest workspace while it is fullest, with the user's lines."""
    workspaces: list[_Workspace] = [each for record in manifest.memory for each in record["workspaces"]]
    buffers = max(workspaces, key=lambda workspace: workspace["peak"])["buffers"]
    moments = [
        [other for other in buffers if other["first"] <= buffer["first"] <= other["last"]]
        for buffer in buffers
    ]
    fullest = max(moments, key=lambda alive: sum(buffer["units"] for buffer in alive))
    found = []
    for buffer in sorted(fullest, key=lambda buffer: -buffer["units"])[:_NAMED]:
        shape = ", ".join(map(str, buffer["shape"]))
        text = f"{human(buffer['units'])} of shape ({shape})"
        node = emit.node_named(fgraph, buffer["node"])
        if node is not None:
            text += f" from {node.op}{describe(node.location)}"
        found.append(text)
    return "; ".join(found)
