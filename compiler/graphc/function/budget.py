# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``memory_budget=`` of `graphc.function`: its values, and what is said where it cannot be kept to."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypedDict

from graphc import emit
from graphc.errors import MemoryBudgetWarning
from graphc.function.memory_text import human, more
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.location import describe, frames_inside
from graphc.library.memory.places import Planned, planned_bytes
from graphc_runtime.manifest import Manifest

if TYPE_CHECKING:
    from graphc.ir.recomputed import Recomputed

_UNITS = {"B": 1}
_UNITS |= {prefix + "B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)}
_UNITS |= {prefix + "iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)}
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


def parsed(budget: object) -> int | None:
    """The bytes of a budget: a number, or text such as ``"64 MiB"``; None for no budget.

    Raises:
        TypeError: it is neither.
        ValueError: it is negative, or the text is no number with a unit.
    """
    if budget is None:
        return None
    if isinstance(budget, str):
        return _from_text(budget)
    if isinstance(budget, bool) or not hasattr(budget, "__index__"):
        raise TypeError(
            "memory_budget must be a number of bytes or text such as '64 MiB', got "
            f"{budget!r} of type {type(budget).__name__}"
        )
    number = int(budget.__index__())
    if number < 0:
        raise ValueError(f"memory_budget must not be negative, got {number} bytes")
    return number


def _from_text(text: str) -> int:
    number = text.strip().rstrip("".join({*"".join(_UNITS)}))
    unit = text.strip()[len(number) :]
    try:
        value = float(number) * _UNITS[unit or "B"]
        if 0 <= value < 2**63:
            return int(value)
    except (ValueError, KeyError):
        pass
    raise ValueError(
        f"memory_budget must be a number of bytes with one of the units {', '.join(_UNITS)}, such as "
        f"'64 MiB', got {text!r}"
    )


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
    nodes = emit.all_nodes(fgraph)
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
        index = int(buffer["node"][1:] or -1)
        if 0 <= index < len(nodes):
            text += f" from {nodes[index].op}{describe(nodes[index].location)}"
        found.append(text)
    return "; ".join(found)
