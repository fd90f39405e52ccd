# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``profile=True``: what is counted, where it is said to come from, and that nothing else changes."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

x, m = pt.vector("x"), pt.matrix("m")
HERE = __file__


def line() -> int:
    return sys._getframe(1).f_lineno


def test_operations_have_runs_and_lines(monkeypatch):
    monkeypatch.chdir(Path(HERE).parent)
    y, here = pt.exp(x).sum(), line()
    f = graphc.function([x], y, profile=True, name="model")
    for _ in range(3):
        f(np.arange(50.0))
    rows = f.profile.rows()
    assert rows[0].what == "function" and rows[0].runs == 3 and rows[0].path == ()
    (loop,) = [row for row in rows if any(op == "exp" for op in row.ops)]
    assert loop.runs == 3 and loop.path == ("function",)
    assert {(place.file, place.line) for place in loop.lines} == {(HERE, here)}
    assert loop.total == loop.seconds >= 0
    assert rows[0].total == pytest.approx(sum(row.seconds for row in rows))
    text = str(f.profile)
    assert "profile of model: 3 calls" in text and f"  test_profile.py:{here}" in text


def test_inside_loops():
    def step(row, state):
        return pt.tanh(state * 0.5 + row)

    rows = graphc.scan(step, sequences=[m], outputs_info=[pt.zeros(m.shape[1])], return_updates=False)
    f = graphc.function([m], rows[-1], profile=True)
    for _ in range(2):
        f(np.ones((7, 40)))
    (inner,) = [row for row in f.profile.rows() if "tanh" in row.ops]
    assert inner.runs == 2 * 7 and len(inner.path) == 2 and inner.path[1] == "Scan"
    outer = next(row for row in f.profile.rows() if row.name == "Scan" and row.total > row.seconds)
    assert outer.total >= inner.total
    assert "tanh, mul, add in Scan" in str(f.profile)


def test_reset():
    f = graphc.function([x], pt.exp(x), profile=True)
    f(np.ones(9))
    f.profile.reset()
    assert all(row.runs == 0 and row.seconds == 0 for row in f.profile.rows())
    assert "0 calls" in str(f.profile)


def test_off_by_default():
    f = graphc.function([x], pt.exp(x))
    assert f.profile is None and "graphc_profile" not in f.ir_stages()["llvm"]


def test_pictures_and_traces(tmp_path):
    f = graphc.function([x, m], pt.exp(m @ x).sum(), profile=True)
    f(np.ones(30), np.ones((20, 30)))
    picture = f.profile.to_svg(tmp_path / "flame.svg")
    root = xml.etree.ElementTree.fromstring(picture)
    boxes = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if len(g) and g[0].tag.endswith("title")]
    assert len(boxes) == len(f.profile.rows()) and (tmp_path / "flame.svg").read_text() == picture
    f.profile.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == [row.name for row in f.profile.rows()]
    whole = events[0]["ts"] + events[0]["dur"]
    assert all(event["ts"] >= 0 and event["ts"] + event["dur"] <= whole * (1 + 1e-9) for event in events)


def test_segments_around_python():
    shown = graphc.printing.Print("x", global_fn=lambda op, value: None)(pt.exp(x))
    f = graphc.function([x], pt.log(shown + 1), profile=True)
    f(np.ones(5))
    ops = [op for row in f.profile.rows() for op in row.ops]
    assert "exp" in ops and ("log" in ops or "log1p" in ops)


@pytest.mark.parametrize("mode", ["reference", "interpret", "debug"])
def test_modes_that_compile_nothing(mode):
    with pytest.raises(ValueError, match="profile=True measures compiled code"):
        graphc.function([x], pt.exp(x), mode=mode, profile=True)


def test_failed_checks_leave_the_counters_in_order():
    f = graphc.function([x, m], pt.exp(m @ x), profile=True)
    with pytest.raises(ValueError):
        f(np.ones(3), np.ones((2, 4)))
    np.testing.assert_allclose(f(np.ones(4), np.ones((2, 4))), np.exp([4.0, 4.0]))
    assert f.profile.rows()[0].runs >= 1


PROGRAMS = {
    "elementwise": lambda: pt.tanh(m) * 2 + pt.exp(-(m**2)),
    "reduction": lambda: pt.log(pt.exp(m).sum(axis=1)),
    "products": lambda: (m @ m.T).sum(axis=0),
    "kernel": lambda: pt.linalg.cholesky(m @ m.T + pt.eye(m.shape[0])),
    "loop": lambda: graphc.scan(
        lambda row, s: pt.tanh(s @ m.T @ m * 0.1 + row),
        sequences=[m],
        outputs_info=[pt.zeros(m.shape[1])],
        return_updates=False,
    ),
    "conditional": lambda: graphc.ifelse(m.sum() > 0, pt.exp(m), m * 2),
    "gradient": lambda: graphc.grad(pt.tanh(m @ m.T).sum(), m),
}


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same_bit_for_bit(name, mode):
    result = PROGRAMS[name]()
    plain, measured = (graphc.function([m], result, mode=mode, profile=on) for on in (False, True))
    random = np.random.default_rng(7)
    for shape in ((6, 5), (1, 1), (0, 4), (300, 40)):
        given = random.normal(size=shape)
        np.testing.assert_array_equal(measured(given), plain(given))
    assert measured.profile.rows()[0].runs == 4


def test_operations_of_gradients_have_the_line_that_they_are_of():
    """Not the one line of `grad`."""
    x, w = pt.matrix("x"), pt.matrix("w")
    first = located(lambda: pt.tanh(x @ w))
    second = located(lambda: graphc.scan(lambda row, h: pt.sin(h) * row, first[0], pt.zeros(4))[-1].sum())
    slope = graphc.grad(second[0], w)
    applied = {
        node.location.line
        for node in graphc.graph.traversal.applys_between([x, w], [slope])
        if node.location is not None
    }
    assert applied <= {first[1], second[1]} and first[1] in applied
    f = graphc.function([x, w], [second[0], slope], profile=True)
    f(np.ones((3, 4)), np.ones((4, 4)))
    lines = {line.line for row in f.profile.rows() for line in row.lines}
    assert {first[1], second[1]} <= lines


def located(make):
    """What a function makes, and its line."""
    return make(), make.__code__.co_firstlineno
