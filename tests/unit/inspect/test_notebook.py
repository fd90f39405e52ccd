# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What notebooks show."""

from __future__ import annotations

import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest

import graphc
import graphc.tensor as pt
from graphc.inspect.svg import MOST_NODES


class Tags(HTMLParser):
    """HTML whose elements are all closed; what text it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Closed where it begins."""


x = pt.vector("x<1>")


def test_functions():
    total = graphc.shared(1.0, name="total")
    f = graphc.function([x], pt.exp(x).sum() + total, name="a & b")
    shown = Tags(f._repr_html_())
    for text in ("a & b", "x<1>", "TensorType(float64, (?,))", "total", "exp", "how it was compiled"):
        assert text in shown.text
    assert "ms" in Tags(f.report._repr_html_()).text


def test_fallbacks_of_a_report():
    f = graphc.function([x], graphc.printing.Print("x")(x) + 1)
    assert "it prints, which only Python can" in Tags(f.report._repr_html_()).text


def test_graphs_and_variables():
    y = pt.exp(x)
    for shown in (y, graphc.function([x], y).fgraph):
        picture = shown._repr_svg_()
        assert "exp" in picture and xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
    assert x._repr_svg_() is None


def test_large_graphs_are_text():
    y = x
    for _ in range(MOST_NODES):
        y = pt.exp(y)
    assert y._repr_svg_() is not None and pt.exp(y)._repr_svg_() is None


def test_types():
    assert "float32" in (text := Tags(pt.fmatrix().type._repr_html_()).text) and "2 axes: ? × ?" in text
    assert "a number" in pt.scalar().type._repr_html_()


@pytest.mark.parametrize("on", [False, True])
def test_plans_and_profiles(on):
    f = graphc.function([x], pt.exp(x).sum(), profile=on)
    assert f.memory_plan()._repr_svg_().startswith("<svg")
    assert f.profile is None or f.profile._repr_svg_().startswith("<svg")
