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


# The lines of the first page, and what they are called there.
_CHOSEN = {
    "call overhead: x + 1, 3 elements": "a call of x + 1",
    "exp(x) * y + 1, 1e6 float64": "exp(x) * y + 1, a million elements",
    "matrix product, 512 x 512": "matrix product, 512 x 512",
    "sort, 1e6 float64": "sort, a million elements",
    "perceptron, 8 layers of 256, batch 512: loss and gradient": "perceptron, loss and gradient",
    "h = 0.9*h + x, 10,000 steps, all kept": "loop, 10,000 steps of 0.9 * h + x",
    "recurrent network, H = 64, T = 1000: gradient of the sum of squares by W, U and h0": (
        "recurrent network, gradient"
    ),
    "GARCH(1,1), T = 500: log-likelihood and gradient": "GARCH, likelihood and gradient",
    "the same and its gradient by the four matrices of the model": "Kalman filter, likelihood and gradient",
    "compile and first call of x + 1, compiler loaded": "compiling x + 1",
    "the same, 300 operations with gradient": "compiling 300 operations with gradient",
}
_STYLE = (
    ".back{fill:#fff}text{fill:#222}.grid{stroke:#ddd}.one{stroke:#222}.quiet{fill:#666}"
    "@media(prefers-color-scheme:dark){.back{fill:#1e2129}text{fill:#e6e6e6}.grid{stroke:#444}"
    ".one{stroke:#e6e6e6}.quiet{fill:#aaa}}"
)


def first_picture() -> str:
    """The chart of the first page: some lines, large enough for phones, light or dark as the reader has it.

    Raises:
        KeyError: the benchmarks have no line of that name any more.
    """
    found = dict(_bench_rows())
    left, width, row, top = 250, 430, 24, 62
    low, high = 0.5, 512.0
    bottom = top + row * len(_CHOSEN)
    peers = ("pytensor", "jax", "torch")

    def place(ratio: float) -> float:
        return left + width * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {bottom + 28}"',
        'font-family="sans-serif" font-size="13">',
        "<title>Times of PyTensor, JAX and PyTorch over graphc's</title>",
        f"<style>{_STYLE}</style>",
        '<rect class="back" width="100%" height="100%"/>',
        '<text x="8" y="20" font-size="15">How many times as long others take</text>',
    ]
    for number, (name, shown) in enumerate(zip(peers, ("PyTensor", "JAX", "torch.compile"), strict=True)):
        lines.append(_mark(name, left + 6 + 92 * number, 36))
        lines.append(f'<text x="{left + 16 + 92 * number}" y="41">{shown}</text>')
    ratio = low
    while ratio <= high:
        x, kind = place(ratio), "one" if ratio == 1.0 else "grid"
        lines.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 6}" y2="{bottom}"/>')
        label = f"{ratio:g}" if ratio != 1.0 else "as long"
        lines.append(f'<text class="quiet" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>')
        ratio *= 4 if ratio >= 1 else 2
    for number, (name, shown) in enumerate(_CHOSEN.items()):
        y = top + row * number + row / 2
        lines.append(f'<text x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{html.escape(shown)}</text>')
        lines += [
            _mark(peer, place(found[name][peer]), y, found[name][peer])
            for peer in peers
            if peer in found[name]
        ]
    return "\n".join([*lines, "</svg>", ""])


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
