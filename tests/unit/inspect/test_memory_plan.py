# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Function.memory_plan: numbers, text and pictures."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.function.budget import human
from graphc.ir.size import Argument, Recorded
from graphc.library.places import Interval, aligned, pack

FILE = Path(__file__).name


def perceptron(sizes: list[int]) -> Any:
    x = pt.matrix("x")
    w = [pt.matrix(f"w{i}") for i in range(len(sizes) - 1)]
    h = x
    for weights in w:
        h = pt.tanh(pt.dot(h, weights))
    loss = (h**2).sum()
    return graphc.function([x, *w], [loss, *graphc.grad(loss, w)], name="perceptron")


def shapes(batch: int, sizes: list[int]) -> list[tuple[int, ...]]:
    return [(batch, sizes[0]), *pairwise(sizes)]


SIZES = [[64] * 9, [200, 128, 64, 32, 16, 32, 64, 128, 200], [40, 90, 20, 150, 33, 71, 64, 9, 120]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_perceptron_needs_little_more_than_what_is_alive(sizes: list[int]) -> None:
    plan = perceptron(sizes).memory_plan(*shapes(32, sizes))
    assert plan.alive <= plan.peak <= 1.1 * plan.alive
    # A product and its tanh of each layer, and two values of each on the way back.
    assert plan.peak < 0.4 * sum(4 * 8 * 32 * width for width in sizes[1:]) and plan.peak < plan.total


def test_numbers_are_those_of_the_layout() -> None:
    f = perceptron([5, 30, 20, 10])
    plan = f.memory_plan(*shapes(9, [5, 30, 20, 10]))
    buffers = [b for b in plan.buffers if b.place == "workspace"]
    assert [w.number for w in plan.workspaces] == [0] and {b.workspace for b in buffers} == {0}
    for b in buffers:
        assert b.bytes == 8 * np.prod(b.shape) and b.dtype == "float64"
        assert 0 <= b.first <= b.last < len(plan.steps)
        assert b.offset % 64 == 0 and b.offset + b.bytes <= plan.peak
    for a in buffers:
        for b in buffers:
            together = a.first <= b.last and b.first <= a.last
            assert a is b or not together or a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
    assert plan.total == sum(b.bytes for b in buffers)
    lives = [Interval(b.first, b.last) for b in buffers]
    assert pack([aligned(b.bytes) for b in buffers], lives).size >= plan.alive


def test_shapes_values_and_neither() -> None:
    x, w = pt.matrix("x"), pt.matrix("w")
    f = graphc.function([x, w], pt.dot(pt.tanh(pt.dot(x, w)), w))
    unknown = f.memory_plan()
    assert unknown.peak is unknown.total is unknown.alive is None
    # The product, and tanh of it in its place.
    assert [b.shape for b in unknown.buffers] == [("x.shape[0]", "w.shape[1]")]
    assert [b.bytes for b in unknown.buffers] == [None]
    partly = f.memory_plan((3, 40))
    assert [b.shape for b in partly.buffers] == [(3, "w.shape[1]")]
    for plan in (f.memory_plan((3, 40), (40, 40)), f.memory_plan(np.ones((3, 40)), np.eye(40))):
        assert [b.bytes for b in plan.buffers] == [960] and plan.total == 960


def test_ops_and_lines() -> None:
    x = pt.matrix("x")
    product = pt.dot(x, x)
    y = pt.dot(product, x)
    f = graphc.function([x], y)
    (buffer,) = f.memory_plan((20, 20)).buffers
    assert product.owner is not None and product.owner.location is not None
    line = product.owner.location.line
    assert buffer.op == "Matmul" and f"{FILE}:{line} in test_ops_and_lines" in buffer.location
    assert f"{FILE}:{line} in test_ops_and_lines" in str(f.memory_plan())


def test_shared_variables_and_constants_are_known() -> None:
    x, w = pt.matrix("x"), graphc.shared(np.ones((50, 6)), "w")
    f = graphc.function([x], pt.dot(pt.tanh(pt.dot(x, w)), pt.constant(np.ones((6, 8)))))
    plan = f.memory_plan((4, 50))
    assert [b.shape for b in plan.buffers] == [(4, 6)] * len(plan.buffers) and plan.peak is not None


def test_small_buffers_are_on_the_stack() -> None:
    x = pt.tensor("x", dtype="float64", shape=(4, 4))
    plan = graphc.function([x], pt.dot(pt.dot(x, x), x)).memory_plan()
    assert [b.place for b in plan.buffers] == ["stack"] and not plan.workspaces
    assert plan.buffers[0].bytes == 128 and plan.peak == 0
    assert "no workspace" in str(plan) and "stack" in str(plan)


def test_nothing_to_plan() -> None:
    x = pt.vector("x")
    plan = graphc.function([x], pt.exp(x)).memory_plan()
    assert not plan.buffers and plan.peak == 0
    assert str(plan) == "memory plan of function: no intermediate buffers"
    assert not graphc.function([x], pt.exp(x), mode="reference").memory_plan().buffers
    ElementTree.fromstring(plan.to_svg())


def test_copies_say_why() -> None:
    x, y = pt.vector("x"), pt.vector("y")
    plan = graphc.function([x, y], [x, pt.concatenate([x, y])]).memory_plan((10,), (4,))
    whole = [c for c in plan.copies if "must not share memory with an input" in c.why]
    assert len(whole) == 1 and (whole[0].source, whole[0].target, whole[0].bytes) == ("input", "result", 80)
    assert "a result must not share memory with an input" in str(plan)


def test_sizes_that_depend_on_values() -> None:
    n, x = pt.lscalar("n"), pt.matrix("x")
    f = graphc.function([n, x], pt.dot(pt.zeros((n, x.shape[0])) + pt.dot(x, x)[0], x))
    assert f.memory_plan().peak is None
    assert f.memory_plan((), (30, 30)).peak is None
    plan = f.memory_plan(7, (30, 30))
    assert plan.peak is not None and (7, 30) in [b.shape for b in plan.buffers]
    assert ("n", 30) in [b.shape for b in f.memory_plan((), (30, 30)).buffers]


def test_plans_come_from_the_cache_and_from_pickles(tmp_path: Path) -> None:
    with graphc.config.change_flags(cache_dir=str(tmp_path)):
        first = perceptron([5, 30, 20])
        second = perceptron([5, 30, 20])
    assert (first.report.cache, second.report.cache) == (["miss"], ["hit"])
    third = pickle.loads(pickle.dumps(second))
    texts = {str(f.memory_plan(*shapes(3, [5, 30, 20]))) for f in (first, second, third)}
    assert len(texts) == 1


def test_functions_that_run_partly_in_python() -> None:
    class Python(graphc.Op):
        __props__ = ()

        def make_node(self, x: Any) -> Any:
            return graphc.Apply(self, [x], [x.type()])

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = inputs[0] + 1

    x = pt.matrix("x")
    h = Python()(pt.dot(pt.tanh(pt.dot(x, x)), x))
    plan = graphc.function([x], pt.dot(pt.dot(h, h), h)).memory_plan()
    assert len(plan.workspaces) == 2 and {b.workspace for b in plan.buffers} == {0, 1}
    assert "2 workspaces" in str(plan)


def test_debug_mode() -> None:
    x = pt.matrix("x")
    f = graphc.function([x], pt.dot(pt.dot(x, x), x), mode="debug")
    # The common factor of the sizes, rounded up.
    assert f.memory_plan((30, 30)).peak == 8 * aligned(30 * 30)


def test_what_cannot_be_given() -> None:
    f = perceptron([3, 4])
    with pytest.raises(TypeError, match="takes 2 inputs, got 3"):
        f.memory_plan((1, 3), (3, 4), (1,))
    with pytest.raises(TypeError, match=r"x has 2 dimensions, got the shape \(3,\)"):
        f.memory_plan((3,))


@pytest.mark.parametrize("given", [True, False])
def test_pictures(tmp_path: Path, given: bool) -> None:
    sizes = [20, 10, 5]
    plan = perceptron(sizes).memory_plan(*(shapes(6, sizes) if given else []))
    text = plan.to_svg(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == text == plan._repr_svg_()
    root = ElementTree.fromstring(text)
    boxes = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if "buffer" in r.get("class", "")]
    assert len(boxes) == len(plan.buffers)
    height, width = float(root.get("height", 0)), float(root.get("width", 0))
    for box in boxes:
        assert 0 <= float(box.get("x", -1)) <= float(box.get("x", 0)) + float(box.get("width", 0)) <= width
        assert 0 <= float(box.get("y", -1)) <= float(box.get("y", 0)) + float(box.get("height", 0)) <= height
    assert "Matmul" in text and ("peak" in text) == given


def test_expressions() -> None:
    nodes: list[list[Any]] = [
        ["dim", 0, 1],
        ["const", 3],
        ["addi", 0, 1],
        ["cmpi", 2, 0, 1],
        ["select", 3, 2, 1],
        ["maxsi", 0, 1],
        ["divsi", 2, 1],
        ["remsi", 2, 1],
        ["value", 1],
        ["?"],
        ["floordivsi", 8, 9],
        ["divsi", 0, 8],
    ]
    known = Recorded(nodes, [Argument("x", (None, 2)), Argument("n", (), 0)])
    assert [known.value(i) for i in range(len(nodes))] == [2, 3, 5, 1, 5, 3, 1, 2, 0, None, None, None]
    unknown = Recorded(nodes, [Argument("x", (None, None)), Argument("n", ())])
    texts = [unknown.text(i) for i in range(10)]
    assert texts[2] == "x.shape[1] + 3" and texts[5] == "max(x.shape[1], 3)" and texts[8] == "n"
    assert texts[4] == "(x.shape[1] + 3 or 3)" and texts[6] == "((x.shape[1] + 3) // 3)"
    assert unknown.text(9) == unknown.text(10) == "data-dependent"
    assert known.product([0, 1]) == 6 and unknown.product([0, 1]) is None
    assert Recorded([["const", -2], ["const", 4]], []).product([0, 1]) == 0


def test_human_sizes() -> None:
    assert [human(n) for n in (0, 1023, 1024, 1536, 5 << 20, 3 << 40, None)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 TiB",
        "?",
    ]


def test_what_nobody_reads_any_more_is_overwritten() -> None:
    """Results are right where loops compute in the memory of an operand, and where they must not."""
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((40, 40)), rng.standard_normal((40, 40)), rng.standard_normal(40)
    x, y, v = pt.matrix("x"), pt.matrix("y"), pt.vector("v")
    product = pt.dot(x, y)
    kept = pt.tanh(product + v)
    cases = [
        (pt.dot(kept, y), np.tanh(a @ b + c) @ b, 1),
        (pt.dot(kept, product), np.tanh(a @ b + c) @ (a @ b), 2),
        (pt.dot(pt.tanh(product.T), y), np.tanh((a @ b).T) @ b, None),
        (pt.dot(product * product.sum(axis=0), y), ((a @ b) * (a @ b).sum(axis=0)) @ b, None),
        (pt.dot(pt.exp(-(product**2)) / pt.exp(product).sum(), y), None, None),
    ]
    for result, expected, count in cases:
        f = graphc.function([x, y, v], result, on_unused_input="ignore")
        if expected is None:
            p = a @ b
            expected = np.exp(-(p**2)) / np.exp(p).sum() @ b
        np.testing.assert_allclose(f(a, b, c), expected, rtol=1e-10)
        plan = f.memory_plan(a, b, c)
        assert count is None or [buffer.shape for buffer in plan.buffers] == [(40, 40)] * count
