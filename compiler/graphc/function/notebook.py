# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HTML of functions and reports for notebooks. Nothing is compiled for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from graphc.graph.svg import notebook_picture

if TYPE_CHECKING:
    from graphc.function.report import CompileReport
    from graphc.function.types import Function


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def report_html(report: CompileReport) -> str:
    """Times of a compilation as a table, and what runs in Python."""
    head, *_ = str(report).splitlines()
    rows = [(name, f"{seconds * 1e3:.2f}") for name, seconds in report.phases.items()]
    slow = sorted(report.passes, key=lambda run: -run[1])[:10]
    parts = [f"<p>{escape(head)}</p>", _table(("phase", "ms"), rows)]
    if slow:
        times = _table(("pass", "ms"), [(name, f"{seconds * 1e3:.2f}") for name, seconds in slow])
        parts.append(f"<details><summary>the slowest passes</summary>{times}</details>")
    if report.fallbacks:
        listed = [(each.op, each.reason, str(each.location or "")) for each in report.fallbacks]
        parts.append(_table(("runs in Python", "because", "made at"), listed))
    return "".join(parts)


def function_html(function: Function) -> str:
    """Inputs and outputs, the picture of a graph that is not large, the report."""
    arguments = [("input", str(item.variable), str(item.variable.type)) for item in function.inputs]
    results = [("output", str(v), str(v.type)) for v in function.outputs]
    cells = [("kept", str(v), str(v.type)) for v in function.get_shared()]
    picture = notebook_picture(function.fgraph)
    shown = f"<details open><summary>graph</summary>{picture}</details>" if picture else ""
    return (
        f"<p><b>{escape(function.report.name)}</b></p>"
        f"{_table(('', 'name', 'type'), [*arguments, *results, *cells])}{shown}"
        f"<details><summary>how it was compiled</summary>{report_html(function.report)}</details>"
    )
