# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The short form of loops, and what the page about them shows."""

from __future__ import annotations

import re

import pytest

import graphc
import graphc.tensor as pt
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.passes import discover
from graphc_dialects._mlir import ir
from graphc_dialects.dialect import new_context
from graphc_tools.loop_notation import loop_notation
from graphc_tools.scan_picture import rows_picture
from graphc_tools.scan_tutorial import _LIMITS, tutorial_page


def lines_of(inputs, outputs, **options) -> list[str]:
    text = emit_module(FunctionGraph(inputs, outputs)).text
    with new_context(), ir.Location.unknown():
        return loop_notation(ir.Module.parse(text), [v.name for v in inputs], checks=False, **options)


def test_states_are_recurrences():
    x = pt.vector("x")
    start = pt.constant([1.0, 2.0], name="h")
    h = graphc.scan(
        lambda x_t, a, b: a - (b - x_t),
        x,
        {"initial": start, "taps": [-2, -1]},
        name="loop",
        return_updates=False,
    )
    scan = h.owner.inputs[0]
    assert lines_of([x], [scan]) == [
        "main(x: ?):",
        '    scan "loop", t = 0 ... len(x)-1:',
        "        h[t] = h[t-2] - (h[t-1] - x[t])    # from [1.000000e+00, 2.000000e+00], keep all",
        "    return trace(h)",
    ]


def test_loops_backwards_count_down():
    x = pt.vector("x")
    _, ys = graphc.loop(lambda s, v: (s + v, s * v), pt.constant(0.0, name="s"), x, reverse=True)
    shown = "\n".join(lines_of([x], [ys]))
    assert "t = len(x)-1 ... 0" in shown
    assert "s[t] = s[t+1] + x[t]" in shown


def test_stop_conditions_and_products():
    w = pt.matrix("w")
    start = pt.vector("v")
    v = graphc.scan(
        lambda v: (v @ w.T, graphc.until(v.sum() < 1)), outputs_info=start, n_steps=9, return_updates=False
    )
    shown = "\n".join(lines_of([w, start], [v.owner.inputs[0]]))
    assert "v2[t] = v2[t-1] @ w.T    # from v, keep all" in shown
    assert "until sum(v2[t-1], axes=[0]) < 1" in shown


def test_inner_loops_have_names_of_their_own():
    m = pt.matrix("m")
    rows = graphc.scan(
        lambda row: graphc.scan(lambda e, s: s + e, row, 0.0, return_updates=False)[-1],
        m,
        return_updates=False,
    )
    shown = lines_of([m], [rows])
    assert sum("scan" in line for line in shown) == 2
    assert any("t2 = 0" in line for line in shown)


@pytest.fixture(scope="module")
def page() -> str:
    return tutorial_page()


def test_the_page_shows_each_pass_once_and_what_it_changes(page):
    passes = [flag.removeprefix("graphc-") for flag in discover() if flag.startswith("graphc-scan-")]
    assert sorted(re.findall(r"^### (scan-[\w-]+)$", page, re.MULTILINE)) == sorted(passes)
    assert sorted(_LIMITS) == sorted(f"graphc-{name}" for name in passes)
    pictures = re.findall(r"^Example: .*?^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(pictures) == len(passes)
    for picture in pictures:
        # Every pass changes or adds lines; one that finds sizes takes none away.
        assert re.search(r"^\+", picture, re.MULTILINE)
    assert sum(bool(re.search(r"^-", picture, re.MULTILINE)) for picture in pictures) >= len(pictures) - 1


def test_links_within_the_page_lead_somewhere(page):
    titles = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) <= anchors


def test_the_picture_is_well_formed():
    from xml.etree import ElementTree

    labels = [node.text for node in ElementTree.fromstring(rows_picture()).iter() if node.text]
    assert {"x[0]", "h[-2]", "h[4]", "tap -1", "tap -2"} <= set(labels)
