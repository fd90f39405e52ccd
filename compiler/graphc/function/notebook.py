# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""HTML of reports for notebooks. Nothing is compiled for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphc.function.report import CompileReport


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of texts below a head."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def report_html(report: CompileReport) -> str:
    """Times of a compilation as a table, and what runs in Python."""
    head, *_ = str(report).splitlines()
    rows = [(name, f"{seconds * 1e3:.2f}") for name, seconds in report.phases.items()]
    slow = sorted(report.passes, key=lambda run: -run[1])[:10]
    parts = [f"<p>{escape(head)}</p>", table(("phase", "ms"), rows)]
    if slow:
        times = table(("pass", "ms"), [(name, f"{seconds * 1e3:.2f}") for name, seconds in slow])
        parts.append(f"<details><summary>the slowest passes</summary>{times}</details>")
    if report.fallbacks:
        listed = [(each.op, each.reason, str(each.location or "")) for each in report.fallbacks]
        parts.append(table(("runs in Python", "because", "made at"), listed))
    return "".join(parts)
