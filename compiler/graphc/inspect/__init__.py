# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is shown of functions and of what they were compiled to: reports, plans, profiles, traces, pages.

Nothing below imports this package, and few processes load it: methods of functions end here through
`graphc.hooks.inspection`.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from graphc.function.base import BaseFunction
from graphc.function.report import CompileReport
from graphc.graph.contract import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.inspect.debug import DebugExecutor
from graphc.inspect.explorer import explore
from graphc.inspect.memory import memory_plan
from graphc.inspect.nan_guard import GuardedExecutor
from graphc.inspect.profile import Profile
from graphc.inspect.roofline import roofline_of
from graphc.inspect.svg import notebook_picture
from graphc.inspect.trace import Trace
from graphc.inspect.writers import html_table

__all__ = [
    "Profile",
    "Trace",
    "checking",
    "explore",
    "function_html",
    "memory_plan",
    "report_html",
    "roofline_of",
]


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
