# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Profiles as flame graphs.

Source: B. Gregg, "The flame graph", Communications of the ACM 59 (6), 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphc.function.profile import ProfileRow

_WIDTH, _ROW, _MARGIN, _LETTER = 960.0, 22.0, 12.0, 6.7
_COLOURS = ("#ffe2cc", "#fff8c5", "#ffebe9", "#ffd8a8", "#fbefff")
_STYLE = """
text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
.title { font-weight: bold } .box { stroke: #57606a; stroke-width: 0.5 }
"""


def flame_graph(name: str, rows: Sequence[ProfileRow]) -> str:
    """The text of a picture."""
    whole = sum(row.seconds for row in rows)
    depth = max((len(row.path) for row in rows), default=0) + 1
    width, height = _WIDTH + 2 * _MARGIN, depth * _ROW + 2 * _MARGIN + 20
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg"',
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
        f'<style>{_STYLE}</style><rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="title" x="{_MARGIN}" y="16">{escape(name)}: {whole * 1e3:.3f} ms</text>',
        *(_boxes(rows, whole, height - _MARGIN) if whole else ()),
        "</svg>",
    ]
    return "\n".join(lines)


def _boxes(rows: Sequence[ProfileRow], whole: float, bottom: float) -> Iterator[str]:
    """One box a row, on that of the loop that it is in; rows come after the loops that they are in."""
    ends: dict[tuple[str, ...], float] = {}
    for i, row in enumerate(rows):
        start = ends.get(row.path, 0.0)
        ends[row.path] = start + row.total
        ends[(*row.path, row.name)] = start
        x, width = _MARGIN + start / whole * _WIDTH, row.total / whole * _WIDTH
        y = bottom - (len(row.path) + 1) * _ROW
        where = "".join(f"\n{line}" for line in row.lines)
        title = f"{', '.join(row.ops) or row.what}: {row.total * 1e3:.3f} ms, {row.total / whole:.1%}{where}"
        colour = _COLOURS[i % len(_COLOURS)]
        yield f"<g><title>{escape(title)}</title>"
        yield (
            f'<rect class="box" x="{x:.2f}" y="{y:.1f}" width="{max(width, 0.3):.2f}" '
            f'height="{_ROW - 1:.1f}" fill="{colour}"/>'
        )
        fitting = row.name[: int((width - 6) / _LETTER)] if width > 20 else ""
        yield f'<text x="{x + 3:.2f}" y="{y + 15:.1f}">{escape(fitting)}</text></g>'
