# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views of functions and of what they were compiled to: reports, plans, profiles, traces, pages.

Nothing below imports this package, and few processes load it: methods of functions end here through
`graphc.hooks.inspection`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape

from graphc.emit import all_nodes
from graphc.function.base import BaseFunction
from graphc.function.compiled import Compiled
from graphc.function.report import CompileReport
from graphc.function.types import Function
from graphc.graph.contract import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.inspect.debug import DebugExecutor
from graphc.inspect.explorer import explore
from graphc.inspect.memory import Given, arguments_of, given_values, memory_plan
from graphc.inspect.nan_guard import GuardedExecutor
from graphc.inspect.profile import Profile
from graphc.inspect.roofline import Counts, Roofline, machine_limits, row_of
from graphc.inspect.svg import notebook_picture
from graphc.inspect.trace import Trace
from graphc.inspect.writers import html_table

__all__ = [
    "Profile", "Trace", "checking", "explore", "function_html", "memory_plan", "report_html", "roofline_of",
]  # fmt: skip


def checking(
    fgraph: FunctionGraph, report: CompileReport, compiler: Callable[[FunctionGraph], Executor]
) -> Executor:
    """A program that checks what a graph computes: with a NaN guard, or in mode "debug".

    Args:
        fgraph: the graph.
        report: says which; gains a line of what is not compiled.
        compiler: makes the program that mode "debug" checks.
    """
    if report.nan_guard != "off":
        return GuardedExecutor(fgraph, report.nan_guard, report)
    return DebugExecutor(fgraph, compiler)


def function_html(function: BaseFunction) -> str:
    """Inputs and outputs, the picture of a graph that is not large, the report."""
    arguments = [("input", str(item.variable), str(item.variable.type)) for item in function.inputs]
    results = [("output", str(v), str(v.type)) for v in function.outputs]
    cells = [("kept", str(v), str(v.type)) for v in function.get_shared()]
    picture = notebook_picture(function.fgraph)
    shown = f"<details open><summary>graph</summary>{picture}</details>" if picture else ""
    return (
        f"<p><b>{escape(function.report.name)}</b></p>"
        f"{html_table(('', 'name', 'type'), [*arguments, *results, *cells])}{shown}"
        f"<details><summary>how it was compiled</summary>{report_html(function.report)}</details>"
    )


def report_html(report: CompileReport) -> str:
    """Times of a compilation as a table, and what runs in Python."""
    head, *_ = str(report).splitlines()
    rows = [(name, f"{seconds * 1e3:.2f}") for name, seconds in report.phases.items()]
    slow = sorted(report.passes, key=lambda run: -run[1])[:10]
    parts = [f"<p>{escape(head)}</p>", html_table(("phase", "ms"), rows)]
    if slow:
        times = html_table(("pass", "ms"), [(name, f"{seconds * 1e3:.2f}") for name, seconds in slow])
        parts.append(f"<details><summary>the slowest passes</summary>{times}</details>")
    if report.fallbacks:
        listed = [(each.op, each.reason, str(each.location or "")) for each in report.fallbacks]
        parts.append(html_table(("runs in Python", "because", "made at"), listed))
    return "".join(parts)


# Seconds that calls are timed for.
_SECONDS = 0.2


def roofline_of(function: Function, args: Sequence[object], seconds: float | None = None) -> Roofline:
    """See `CompileReport.roofline`."""
    found = Roofline(function.report.name, machine_limits(), seconds=seconds)
    whole, given = function.executor.whole, given_values(function, args)
    for segment in function.executor.segments():
        _add(found, segment, given)
    if seconds is None and whole is not None and _may_run(function, args):
        _measure(found, function, whole, args)
    return found


def _add(found: Roofline, segment: Compiled, given: list[Given]) -> None:
    """Adds the kernels of an executable."""
    nodes = all_nodes(segment.fgraph)
    for work in segment.work():
        counts = Counts(work, arguments_of(segment, given))
        for kernel in work["kernels"]:
            found.rows.append(row_of(kernel, counts, nodes, found.limits))
            found.unknown += [name for name in counts.unknown(kernel) if name not in found.unknown]


def _may_run(function: BaseFunction, args: Sequence[object]) -> bool:
    """True if calls with these arguments can be timed: all are values, and nothing is changed by a call."""
    if len(args) < len(function.inputs) or any(isinstance(value, tuple) for value in args):
        return False
    return not function.updates and not function.signature.donated


def _measure(found: Roofline, function: Function, whole: Compiled, args: Sequence[object]) -> None:
    """Times calls, and kernels where the function has counters for them."""
    before = _totals(function)
    calls, end = 0, time.perf_counter() + _SECONDS
    best = float("inf")
    while not calls or time.perf_counter() < end:
        start = time.perf_counter()
        function(*args)
        best, calls = min(best, time.perf_counter() - start), calls + 1
    found.seconds = best
    spent = [after - start for after, start in zip(_totals(function), before, strict=True)]
    slots = whole.executable.manifest.extra.get("profile", [])
    free = {
        i: {int(node[1:]) for node in slot["nodes"]}
        for i, slot in enumerate(slots)
        if i and not slot["parent"]
    }
    for row in found.rows:
        match = next((i for i, nodes in free.items() if nodes & row.nodes), None)
        if match is not None and row.is_measured:
            del free[match]
            row.seconds = spent[match] / calls


def _totals(function: Function) -> list[float]:
    """Seconds that each counter of a function has added up, with what is in it; none without counters."""
    return [] if function.profile is None else [row.total for row in function.profile.rows()]
