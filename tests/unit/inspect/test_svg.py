# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`to_svg`."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.inspect.svg import Box, Picture, layout, to_svg

SVG = "{http://www.w3.org/2000/svg}"

MODULE = """\
module {
  func.func @main(%arg0: tensor<?x3xf64>, %arg1: tensor<3xf64>) -> tensor<f64> {
    %cst = arith.constant dense<1.0> : tensor<f64>
    %0 = "graphc.dimshuffle"(%arg1) {order = array<i64: -1, 0>} : (tensor<3xf64>) -> tensor<1x3xf64>
    %1 = "graphc.sub"(%arg0, %0) {cluster = 0 : i64} : (tensor<?x3xf64>, tensor<1x3xf64>) -> tensor<?x3xf64>
    %2 = "graphc.reduce_sum"(%1) {axes = array<i64: 0, 1>, cluster = 0} : (tensor<?x3xf64>) -> tensor<f64>
    %3 = "graphc.add"(%2, %cst) {cluster = 1 : i64} : (tensor<f64>, tensor<f64>) -> tensor<f64>
    return %3 : tensor<f64>
  }
}
"""


def parts(svg):
    """Classes of the rectangles, and the texts."""
    root = ET.fromstring(svg)
    return [r.get("class") for r in root.iter(f"{SVG}rect")], [t.text for t in root.iter(f"{SVG}text")]


def test_graph():
    x = pt.dmatrix("x")
    s = graphc.shared(np.ones(3), name="s")
    y = pt.exp(x * s + 2.0).sum()
    y.name = "total"
    rectangles, texts = parts(to_svg(y))
    assert rectangles[0] == "page" and rectangles.count("box input") == 1
    assert rectangles.count("box shared") == 1
    assert rectangles.count("box output") == 1
    assert "exp" in texts and "total" in texts and "x" in texts
    assert any("float64" in t for t in texts)
    assert not any("float64" in t for t in parts(to_svg(y, print_type=False))[1])


def test_markup_in_names_is_escaped(tmp_path):
    x = pt.dvector("<x & y>")
    path = tmp_path / "graph.svg"
    text = to_svg(pt.exp(x), path)
    assert path.read_text(encoding="utf-8") == text
    assert "<x & y>" in parts(text)[1]


@pytest.mark.parametrize("wrap", [list, lambda v: v[0].owner, lambda v: graphc.FunctionGraph([X], v)])
def test_kinds_of_graphs(wrap):
    assert "exp" in parts(to_svg(wrap([pt.exp(X)])))[1]


X = pt.dvector("x")


def test_what_cannot_be_drawn():
    with pytest.raises(TypeError, match="got 3 of type int"):
        to_svg(3)
    with pytest.raises(ValueError, match=r"func\.func"):
        to_svg("no module")


def test_module_has_a_frame_for_each_kernel():
    rectangles, texts = parts(to_svg(MODULE))
    assert rectangles.count("group") == 2
    assert {"kernel 0", "kernel 1", "sub", "reduce_sum", "dimshuffle", "return", "%arg0"} <= set(texts)
    assert rectangles.count("box constant") == 1
    edges = [p for p in ET.fromstring(to_svg(MODULE)).iter(f"{SVG}path") if p.get("class") == "edge"]
    assert len(edges) == 7


def random_picture(seed):
    rng = np.random.default_rng(seed)
    picture = Picture()
    for i in range(40):
        picture.add(Box(f"b{i}", ["x" * int(rng.integers(1, 20))]))
        if i:
            for j in set(rng.integers(0, i, size=2).tolist()):
                picture.edges.append((f"b{j}", f"b{i}"))
    return picture


@pytest.mark.parametrize("seed", range(5))
def test_boxes_do_not_overlap_and_edges_point_down(seed):
    picture = random_picture(seed)
    layout(picture)
    boxes = list(picture.boxes.values())
    for i, a in enumerate(boxes):
        assert a.x >= 0 and a.x + a.width <= picture.width + 1e-6
        for b in boxes[:i]:
            apart = (
                a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            )
            assert apart, (a, b)
    for a, b in picture.edges:
        assert picture.boxes[a].y + picture.boxes[a].height < picture.boxes[b].y


def test_members_lie_in_their_frames():
    from graphc.inspect.svg import picture_of_module

    picture = picture_of_module(MODULE, True)
    layout(picture)
    for box in picture.boxes.values():
        frames = [picture.groups[box.group]] if box.group else []
        for frame in frames:
            assert frame.x <= box.x and box.x + box.width <= frame.x + frame.width
            assert frame.y <= box.y and box.y + box.height <= frame.y + frame.height
        for group in picture.groups.values():
            if box.group != group.key:
                assert (
                    box.x + box.width <= group.x
                    or group.x + group.width <= box.x
                    or box.y + box.height <= group.y
                    or group.y + group.height <= box.y
                )


def test_cycles_are_reported():
    picture = Picture()
    for key in "ab":
        picture.add(Box(key, [key]))
    picture.edges = [("a", "b"), ("b", "a")]
    with pytest.raises(ValueError, match="cycle"):
        layout(picture)


def test_compiled_functions_show_their_kernels():
    x = pt.dmatrix("x")
    f = graphc.function([x], pt.log(pt.exp(x - 1.0).sum(axis=0)))
    rectangles, texts = parts(to_svg(f))
    assert "group" in rectangles and "exp" in texts
    with pytest.raises(ValueError, match=r"'graph \(optimised\)'"):
        to_svg(f, stage="none")
