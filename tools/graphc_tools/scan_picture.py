# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws docs/guide/scan-rows.svg: the rows of a state with two taps, and what is kept of them."""

from __future__ import annotations

from html import escape

_STEPS, _WINDOW = 5, 2
_LEFT, _COLUMN, _BOX = 150, 92, 62
_TOP, _STATE = 62, 150
_FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"
_MARKER = 'id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
_BLUE, _GREEN, _GREY, _INK = "#2b6cb0", "#2f855a", "#718096", "#1a202c"


def rows_picture() -> str:
    """The picture as SVG."""
    width, height = _LEFT + (_STEPS + _WINDOW) * _COLUMN, 380
    tip = '<path d="M0 0L8 4L0 8z" fill="#1a202c"/>'
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}" font-size="14">',
        "<title>Rows and taps of a state with taps -2 and -1</title>",
        f"<defs><marker {_MARKER}>{tip}</marker></defs>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    parts += _text(20, 30, "h[t] = f(h[t-2], h[t-1], x[t]),  t = 0 ... 4", _INK, weight="bold")
    parts += _sequence() + _state() + _step(3) + _kept()
    return "\n".join([*parts, "</svg>", ""])


def _x(row: int) -> int:
    """Left end of the box of a row; the first initial row is row -2."""
    return _LEFT + (row + _WINDOW) * _COLUMN


def _sequence() -> list[str]:
    parts = _text(20, _TOP + 23, "sequence", _BLUE)
    for t in range(_STEPS):
        parts += _box(_x(t), _TOP, f"x[{t}]", _BLUE, "#ebf4fb")
    return parts


def _state() -> list[str]:
    parts = _text(20, _STATE + 23, "rows of h", _GREEN)
    parts += _text(_x(-_WINDOW), _STATE - 10, "initial, K = 2 rows", _GREY, size=12)
    for t in range(-_WINDOW, _STEPS):
        initial = t < 0
        parts += _box(
            _x(t), _STATE, f"h[{t}]", _GREY if initial else _GREEN, "#edf2f7" if initial else "#e6f6ec"
        )
    return parts


def _step(t: int) -> list[str]:
    """Reads of iteration t: arrows into its new row."""
    target = _x(t) + _BOX // 2
    parts = [_arrow(f"M{target} {_TOP + 36} V{_STATE - 4}")]
    below = _STATE + 36
    for tap, depth, end in ((-1, 26, -8), (-2, 46, 8)):
        start = _x(t + tap) + _BOX // 2 + (6 if tap == -1 else 0)
        parts.append(_arrow(f"M{start} {below + 2} v{depth} H{target + end} V{below + 3}"))
        parts += _text(start + 8, below + depth - 3, f"tap {tap}", _INK, size=12)
    parts += _text(target + 16, below + 26, f"iteration t = {t}", _INK, size=12)
    return parts


def _kept() -> list[str]:
    """Rows that each value of `keep` leaves."""
    parts: list[str] = []
    lines = (('keep = "all"', -_WINDOW), ('keep = "steps"', 0), ('keep = "last", rows = 1', _STEPS - 1))
    for number, (label, first) in enumerate(lines):
        y = 276 + 40 * number
        start, end = _x(first), _x(_STEPS - 1) + _BOX
        path = f"M{start} {y - 7}v14M{start} {y}H{end}M{end} {y - 7}v14"
        parts.append(f'<path d="{path}" stroke="{_GREEN}" stroke-width="2"/>')
        parts += _text(20, y + 5, label, _INK, size=12)
    return parts


def _box(x: int, y: int, label: str, stroke: str, fill: str) -> list[str]:
    return [
        f'<rect x="{x}" y="{y}" width="{_BOX}" height="36" rx="4" fill="{fill}" stroke="{stroke}"/>',
        *_text(x + _BOX // 2, y + 23, label, _INK, anchor="middle"),
    ]


def _arrow(path: str) -> str:
    return f'<path d="{path}" fill="none" stroke="{_INK}" stroke-width="1.5" marker-end="url(#tip)"/>'


def _text(
    x: int, y: int, text: str, fill: str, *, size: int = 14, anchor: str = "start", weight: str = "normal"
) -> list[str]:
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}"'
    return [f'<text x="{x}" y="{y}" fill="{fill}" {style}>{escape(text)}</text>']
