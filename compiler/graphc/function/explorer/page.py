# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The explorer's page: one HTML file with everything in it, which no browser needs a network for."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from graphc.function.explorer.collect import Exploration, View, collect

if TYPE_CHECKING:
    from graphc.function.types import Function


class Page:
    """A page of the compiler explorer; notebooks show it, ``save`` writes it.

    Attributes:
        name: of the function.
        html: the page.
    """

    def __init__(self, name: str, html: str) -> None:
        self.name, self.html = name, html

    def save(self, file: str | PathLike[str]) -> Path:
        """Writes the page; returns where."""
        path = Path(file)
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.name)}" '
            'style="width: 100%; height: 640px; border: 1px solid #8888"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<page of {self.name}, {len(self.html) // 1024} KB: save it with .save('page.html')>"


def explore(function: Function, args: Sequence[object]) -> Page:
    """See `Function.explore`."""
    for i, value in enumerate(args):
        if isinstance(value, (str, PathLike)):
            raise TypeError(
                f"explore(): argument {i} is the name of a file, {str(value)!r}; arguments are example "
                f"values of inputs or their shapes. A page is written with .explore().save({str(value)!r})"
            )
    found = collect(function, args)
    return Page(found.name, page_of(found))


def page_of(found: Exploration) -> str:
    """The text of the page."""
    views = [_described(view, i) for i, view in enumerate(found.views)]
    index = {
        "name": found.name,
        "mode": found.mode,
        "nodes": [[node.op, node.type, node.file, node.line, node.part] for node in found.nodes],
        "views": views,
    }
    stored = [
        f'<script type="application/octet-stream" id="view{i}">{_packed(_content(view))}</script>'
        for i, view in enumerate(found.views)
        if view.text is not None or view.picture
    ]
    parts = {
        "TITLE": escape(f"{found.name} ({found.mode})"),
        "STYLE": _resource("page.css"),
        "INDEX": _packed(index),
        "VIEWS": "\n".join(stored),
        "DIFF": _resource("diff.js"),
        "CODE": _resource("page.js"),
    }
    page = _resource("page.html")
    for name, text in parts.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


def _described(view: View, number: int) -> dict[str, object]:
    return {
        "id": number,
        "kind": view.kind,
        "title": view.title,
        "note": view.note,
        "stage": view.stage,
        "first": view.first,
        "seconds": round(view.seconds, 6),
        "changed": view.changed,
        "picture": bool(view.picture),
    }


def _content(view: View) -> dict[str, object]:
    if view.text is None:
        return {"picture": view.picture}
    return {"text": "\n".join(view.text.lines), "nodes": [list(nodes) for nodes in view.text.nodes]}


def _packed(content: Mapping[str, object]) -> str:
    """JSON, compressed with zlib, in base64: browsers unpack it when it is first looked at."""
    data = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(data)).decode()


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
