# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Charts of the benchmarks, from the tables of their pages: how many times as long other libraries take."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Colour and shape of each library: told apart in print, too.
_MARKS = {
    "pytensor": ("#d9730d", "circle"),
    "jax": ("#3a80cf", "square"),
    "numpy": ("#5f8f3e", "triangle"),
    "torch": ("#a05cc4", "diamond"),
    "numba": ("#d0506c", "circle"),
    "C": ("#7a7a7a", "square"),
}

Rows = list[tuple[str, dict[str, float]]]


@dataclass(frozen=True)
class Chart:
    """Ratios of a table, and how they are drawn.

    Attributes:
        title: what the ratios are.
        rows: a name for each line, and the ratio of each library.
        peers: libraries and what they are called.
        low: the smallest ratio on the scale.
        step: the factor between two lines of the scale.
        left: room for names, in pixels.
    """

    title: str
    rows: Rows
    peers: dict[str, str]
    low: float = 0.25
    step: int = 2
    left: int = 430


def charts() -> dict[str, list[str]]:
    """By page of the site: its chart for wide screens and for narrow ones, as SVG that the page styles."""
    found = {
        "index.md": _first_chart(),
        "benchmarks.md": _chart("Times of other libraries over graphc's", _bench_rows()),
        "benchmarks_pymc.md": _chart("Times over graphc's, PyMC's models", _pymc_rows()),
    }
    return {page: [_drawn(chart), _drawn(chart, is_narrow=True)] for page, chart in found.items()}


def _chart(title: str, rows: Rows) -> Chart:
    peers = {name: name for name in _MARKS if any(name in ratios for _, ratios in rows)}
    return Chart(title, rows, peers)


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
    """The chart of the first page as a file, light or dark as the reader has it."""
    drawn = _drawn(_first_chart())
    start, end, rest = drawn.partition(">\n")
    return f'{start}{end}<style>{_STYLE}</style>\n<rect class="back" width="100%" height="100%"/>\n{rest}'


def _first_chart() -> Chart:
    """Some lines of the benchmarks, large enough for telephones.

    Raises:
        KeyError: the benchmarks have no line of that name any more.
    """
    found: dict[str, dict[str, float]] = {}
    for name, ratios in _bench_rows():  # some lines are in two tables, with other libraries
        found[name] = {**ratios, **found.get(name, {})}
    peers = {"pytensor": "PyTensor", "jax": "JAX", "torch": "torch.compile"}
    rows = [
        (shown, {peer: found[name][peer] for peer in peers if peer in found[name]})
        for name, shown in _CHOSEN.items()
    ]
    return Chart("How many times as long others take", rows, peers, low=0.5, step=4, left=290)


def _drawn(chart: Chart, is_narrow: bool = False) -> str:
    """SVG with a row for each line and a mark for each library; the scale is above and below.

    Where it is narrow, names are above their marks.
    """
    left, width, row = (14, 330, 34) if is_narrow else (chart.left, 470, 20)
    # Three libraries in a line of the legend where it is narrow.
    columns = 3 if is_narrow else len(chart.peers)
    top = 76 + 18 * ((len(chart.peers) - 1) // columns)
    bottom = top + row * len(chart.rows)
    high = 512.0

    def place(ratio: float) -> float:
        return left + width * math.log(min(max(ratio, chart.low), high) / chart.low) / math.log(
            high / chart.low
        )

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 26} {bottom + 24}" role="img"',
        'font-family="sans-serif" font-size="12">',
        f"<title>{html.escape(chart.title)}</title>",
        f'<text x="8" y="20" font-size="15">{html.escape(chart.title)}</text>',
    ]
    for number, (name, shown) in enumerate(chart.peers.items()):
        right, down = 16 + 100 * (number % columns), 40 + 18 * (number // columns)
        lines += [_mark(name, right, down), f'<text x="{right + 10}" y="{down + 4}">{shown}</text>']
    ratio = chart.low
    while ratio <= high:
        x, kind = place(ratio), "one" if ratio == 1.0 else "grid"
        lines.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{bottom}"/>')
        label = "as long" if ratio == 1.0 and not is_narrow else f"{ratio:g}"
        for down in (top - 9, bottom + 16):
            lines.append(f'<text class="quiet" x="{x:.1f}" y="{down}" text-anchor="middle">{label}</text>')
        ratio *= (4 if is_narrow else chart.step) if ratio >= 1 else 2
    longest = 46 if is_narrow else 66
    for number, (name, ratios) in enumerate(chart.rows):
        y = top + row * number + (24 if is_narrow else row / 2)
        shown = html.escape(name if len(name) <= longest else name[: longest - 1] + "…")
        if is_narrow:
            lines.append(f'<text class="over" x="{left - 6}" y="{y - 11:.1f}">{shown}</text>')
        else:
            lines.append(f'<text x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{shown}</text>')
        lines += [
            _mark(peer, place(value), y, value) for peer, value in ratios.items() if peer in chart.peers
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
