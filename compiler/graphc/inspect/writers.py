# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writers of what functions are shown as: tables of text, tables of HTML, pictures in SVG.

Each view makes its own rows, boxes and words; how a column is aligned, a text escaped and a picture framed is
said here once. Pictures have a white page of their own, so that they can be read on dark ones. In the
explorer they take its colours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from os import PathLike
from pathlib import Path

# Width of a letter of the font below.
LETTER = 6.7
_STYLE = "text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }"


def text_table(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Lines of rows of as many cells each, two blanks apart.

    Args:
        rows: the cells, those of the head first.
        left: numbers of the columns that are aligned on the left; the others are on the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of texts below a head."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def svg(size: tuple[float, float], margin: float, style: str, body: Iterable[str]) -> str:
    """The text of a self-contained picture.

    Args:
        size: width and height of what is drawn.
        margin: around it.
        style: CSS, beside the font's.
        body: elements, in whose coordinates the margin begins at (-margin, -margin).
    """
    width, height = (length + 2 * margin for length in size)
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg"',
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.1f} {height:.1f}">',
            f"<style>{_STYLE}{style}</style>",
            f'<rect class="page" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            f'<g transform="translate({margin:g} {margin:g})">',
            *body,
            "</g></svg>",
        ]
    )


def saved(text: str, file: str | PathLike[str] | None) -> str:
    """The text, written to a path if there is one."""
    if file is not None:
        Path(file).write_text(text, encoding="utf-8")
    return text


def rectangle(style: str, box: tuple[float, float, float, float], more: str = "") -> str:
    """A rectangle: x, y, width and height."""
    x, y, width, height = box
    return f'<rect class="{style}" x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}"{more}/>'


def label(style: str, x: float, y: float, text: str, more: str = "") -> str:
    """A line of text."""
    return f'<text class="{style}" x="{x:.2f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def group(title: str, nodes: Iterable[int], elements: Iterable[str]) -> Iterator[str]:
    """Elements that stand for nodes of the graph by number, with a text that a pointer shows."""
    numbers = " ".join(map(str, nodes))
    mark = f' data-n="{numbers}"' if numbers else ""
    yield f"<g{mark}><title>{escape(title)}</title>" if title else f"<g{mark}>"
    yield from elements
    yield "</g>"
