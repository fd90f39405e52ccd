# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`dprint` and `pprint`."""

from __future__ import annotations

import io
import textwrap

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.printing import debugprint, letters, pprint
from graphc.transforms.op_from_graph import OpFromGraph


def text(graph, **options):
    return debugprint(graph, file="str", **options)


def dedent(expected):
    return textwrap.dedent(expected).lstrip("\n")


def test_tree_with_repeated_nodes():
    x, y = pt.dvector("x"), pt.dvector("y")
    e = pt.exp(x)
    e.name = "e"
    assert text(e * y + e) == dedent(
        """
        add [id A]
         ├─ mul [id B]
         │  ├─ exp [id C] 'e'
         │  │  └─ x [id D]
         │  └─ y [id E]
         └─ exp [id C] 'e'
            └─ ···
        """
    )


def test_types_shapes_and_ids():
    x = pt.matrix("x", shape=(2, None), dtype="float64")
    y = pt.exp(x)
    assert text(y, print_type=True, print_shape=True, id_type="int") == dedent(
        f"""
        exp [id 0] <{y.type}> shape=(2, ?)
         └─ x [id 1] <{x.type}> shape=(2, ?)
        """
    )
    assert text(y, id_type="") == "exp\n └─ x\n"
    assert x.auto_name in text(y, id_type="auto")
    assert f"[id {id(x)}]" in text(y, id_type="id")
    with pytest.raises(ValueError, match="id_type must be"):
        text(y, id_type="roman")


def test_depth_and_stop_on_name():
    x = pt.dvector("x")
    h = pt.exp(x)
    h.name = "h"
    y = pt.sin(h)
    assert text(y, depth=1) == "sin [id A]\n"
    assert text(y, depth=2) == "sin [id A]\n └─ exp [id B] 'h'\n"
    assert text(y, depth=0) == ""
    assert text(y, stop_on_name=True) == "sin [id A]\n └─ exp [id B] 'h'\n"
    with pytest.raises(TypeError, match="depth must be an int"):
        text(y, depth="all")


def test_several_graphs_share_identifiers():
    x = pt.dvector("x")
    y = pt.exp(x)
    assert text([y, pt.sin(y)]) == dedent(
        """
        exp [id A]
         └─ x [id B]
        sin [id C]
         └─ exp [id A]
            └─ ···
        """
    )
    ids: dict = {}
    done: dict = {}
    text(y, used_ids=ids, done=done)
    assert text(y, used_ids=ids, done=done) == "exp [id A]\n └─ ···\n"


def test_output_numbers():
    x = pt.dvector("x")
    op = OpFromGraph([x], [x, x * 2])
    assert "OpFromGraph{inline=False}.1 [id A]" in text(op(x)[1])


def test_functions_show_the_order_of_execution():
    x = pt.dvector("x")
    f = graphc.function([x], pt.sin(pt.exp(x)), mode="reference")
    printed = text(f)
    assert "exp [id B] 0" in printed and "sin [id A] 1" in printed
    assert text(f, print_fgraph_inputs=True).startswith("-x")


def test_inner_graphs():
    x, y = pt.dscalars("x", "y")
    op = OpFromGraph([x, y], [x * y], name="product")
    assert text(op(y, pt.exp(x))) == dedent(
        """
        product{inline=False} [id A]
         ├─ y [id B]
         └─ exp [id C]
            └─ x [id D]

        Inner graphs:

        product{inline=False} [id A]
         → x [id E] = y [id B]
         → y [id F] = exp [id C]
         ← mul [id G]
            ├─ x [id E]
            └─ y [id F]
        """
    )
    assert "Inner" not in text(op(y, x), print_inner_graphs=False)


def test_maps_and_locations():
    x = pt.dmatrix("x")
    y = x.T
    assert "v={0: [0]}" in text(y, print_memory_map=True)
    assert f"at {__file__}:" in text(y, print_location=True)


def test_files(capsys):
    x = pt.dvector("x")
    buffer = io.StringIO()
    assert debugprint(x, file=buffer) is buffer
    assert buffer.getvalue() == "x [id A]\n"
    assert x.dprint() is None
    assert capsys.readouterr().out == "x [id A]\n"
    with pytest.raises(TypeError, match="got 3 of type int"):
        text(3)


def test_deep_graphs_do_not_recurse():
    x = pt.dscalar("x")
    y = x
    for _ in range(3000):
        y = pt.exp(y)
    assert text(y).count("\n") == 3001
    assert pprint(y, max_length=100).count("exp") < 100


def test_letters():
    assert [letters(i) for i in (0, 25, 26, 701, 702)] == ["A", "Z", "AA", "ZZ", "AAA"]


@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (lambda x, y: x * 2.0 + y, "x * 2.0 + y"),
        (lambda x, y: (x + y) * x, "(x + y) * x"),
        (lambda x, y: x - (y - x), "x - (y - x)"),
        (lambda x, y: (x - y) - x, "x - y - x"),
        (lambda x, y: -((x + y) ** 2.0), "-(x + y) ** 2.0"),
        (lambda x, y: (x**y) ** x, "(x ** y) ** x"),
        (lambda x, y: pt.exp(x / y), "exp(x / y)"),
    ],
)
def test_pprint(make, formula):
    x, y = pt.dscalars("x", "y")
    assert pprint(make(x, y)) == formula


def test_pprint_skips_alignment():
    x, y = pt.dmatrix("x"), pt.dvector("y")
    assert pprint(x + y) == "x + y"
    assert "Constant" in pprint(x + np.zeros((20, 20)))
