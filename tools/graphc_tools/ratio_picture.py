# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Charts of the benchmarks, from the tables of their pages: how many times as long other libraries take."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT, _WIDTH, _ROW, _TOP = 430, 470, 17, 58
_LOW, _HIGH = 0.25, 512.0
# Colour and shape of each library: told apart in print, too.
_MARKS = {
    "pytensor": ("#d9730d", "circle"),
    "jax": ("#2a6fbb", "square"),
    "numpy": ("#5f8f3e", "triangle"),
    "torch": ("#8e44ad", "diamond"),
    "numba": ("#b8324f", "circle"),
    "C": ("#333333", "square"),
}

Rows = list[tuple[str, dict[str, float]]]


def pictures() -> dict[str, str]:
    """SVG by path in docs/."""
    return {
        "benchmarks.svg": picture("Times of other libraries over graphc's", _bench_rows()),
        "benchmarks_pymc.svg": picture("PyMC's models: times of numba and JAX over graphc's", _pymc_rows()),
    }


def _tables(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Each row of each table of a page, with the header of its table."""
    header: list[str] = []
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not header:
            header = cells
        elif not set(line) <= set("|-: "):
            yield header, cells


def _bench_rows() -> Rows:
    found: Rows = []
    for header, cells in _tables("benchmarks.md"):
        ratios = {
            name.removesuffix(" / graphc"): float(cell)
            for name, cell in zip(header, cells, strict=False)
            if name.endswith(" / graphc") and _is_number(cell)
        }
        if ratios:
            found.append((cells[0].replace("`", ""), ratios))
    return found


def _pymc_rows() -> Rows:
    found: Rows = []
    for header, cells in _tables("benchmarks_pymc.md"):
        if header[:2] == ["model", "us a call"]:
            ours, _, _, *peers = cells[1].split(" / ")
            named = zip(("numba", "jax"), peers, strict=True)
            found.append((cells[0], {name: float(t) / float(ours) for name, t in named if _is_number(t)}))
    return found


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _place(ratio: float) -> float:
    clipped = min(max(ratio, _LOW), _HIGH)
    return _LEFT + _WIDTH * math.log(clipped / _LOW) / math.log(_HIGH / _LOW)


def picture(title: str, rows: Rows) -> str:
    """A row for each line of a benchmark, a mark for each library, on a scale of powers of two."""
    bottom = _TOP + _ROW * len(rows)
    names = [name for name in _MARKS if any(name in ratios for _, ratios in rows)]
    width = _LEFT + _WIDTH + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 24}" width="{width}"',
        'font-family="sans-serif" font-size="11">',
        f"<title>{html.escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="8" y="18" font-size="14">{html.escape(title)}</text>',
    ]
    for number, name in enumerate(names):
        lines.append(_mark(name, 16 + 90 * number, 34))
        lines.append(f'<text x="{26 + 90 * number}" y="38">{name}</text>')
    ratio = _LOW
    while ratio <= _HIGH:
        x = _place(ratio)
        one = ratio == 1.0
        stroke = 'stroke="#333" stroke-width="1.5"' if one else 'stroke="#ddd"'
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom}" {stroke}/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{ratio:g}</text>')
        ratio *= 2
    lines.append(f'<text x="{_place(1) + 4:.1f}" y="{_TOP - 12}" fill="#555">graphc is faster →</text>')
    for number, (name, ratios) in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        shown = name if len(name) <= 68 else name[:67] + "…"
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{html.escape(shown)}</text>')
        lines += [_mark(peer, _place(value), y, value) for peer, value in ratios.items()]
    return "\n".join([*lines, "</svg>", ""])


def _mark(name: str, x: float, y: float, value: float | None = None) -> str:
    colour, shape = _MARKS[name]
    label = "" if value is None else f"<title>{name}: {value:.3g}</title>"
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">{label}</circle>'
    if shape == "square":
        return (
            f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{colour}">{label}</rect>'
        )
    if shape == "diamond":
        points = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 5:.1f},{y:.1f}"
        return f'<polygon points="{points}" fill="{colour}">{label}</polygon>'
    points = f"{x:.1f},{y - 4.5:.1f} {x - 4.5:.1f},{y + 3.5:.1f} {x + 4.5:.1f},{y + 3.5:.1f}"
    return f'<polygon points="{points}" fill="{colour}">{label}</polygon>'
