# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which variables of a scan belong together, and what depends on what."""

from __future__ import annotations

import pytest

import graphc
import graphc.tensor as pt
from graphc.scan import mappings as m
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Output, ScanSpec, Sequence, State, Untraced

SPEC = ScanSpec(
    sequences=(Sequence("x", (0, 2)), Sequence("z")),
    states=(State("h"), State("k", (-3, -1)), State("a", (-2, -1), (-1, 0))),
    outputs=(Output("x"), Output("y")),
    untraced=(Untraced("r"),),
    invariants=(Invariant("w"), Invariant("v")),
    is_while=True,
)
SIDES = ["outer_inp", "inner_inp", "inner_out", "outer_out"]


def _names():
    return {
        "outer_inp": SPEC.outer_input_names(),
        "inner_inp": [name for name, _ in SPEC.inner_input_names()],
        "inner_out": [name for name, _ in SPEC.inner_output_names()],
        "outer_out": SPEC.outer_output_names(),
    }


def _listed(partners):
    return partners if isinstance(partners, list) else [] if partners == -1 else [partners]


def test_there_are_twelve_mappings_over_all_positions():
    found = m.mappings(SPEC)
    assert sorted(found) == sorted(f"{a}_from_{b}" for a in SIDES for b in SIDES if a != b)
    for name, mapping in found.items():
        assert list(mapping) == list(range(len(_names()[name.split("_from_")[1]])))
        assert all(isinstance(v, list if name.startswith("inner") else int) for v in mapping.values())


def test_mappings_go_both_ways():
    found = m.mappings(SPEC)
    for a in SIDES:
        for b in SIDES:
            if a != b:
                there = {(i, j) for i, p in found[f"{a}_from_{b}"].items() for j in _listed(p)}
                back = {(i, j) for j, p in found[f"{b}_from_{a}"].items() for i in _listed(p)}
                assert there == back


def test_partners_have_the_same_name():
    names = _names()
    for name, mapping in m.mappings(SPEC).items():
        target, source = name.split("_from_")
        for position, partners in mapping.items():
            for partner in _listed(partners):
                assert names[target][partner] == names[source][position]


def test_known_positions():
    found = m.mappings(SPEC)
    assert found["inner_inp_from_outer_inp"] == {
        0: [], 1: [0, 1], 2: [2], 3: [3], 4: [4, 5], 5: [6, 7], 6: [8], 7: [9], 8: [10],
    }  # fmt: skip
    assert found["inner_out_from_outer_out"] == {0: [0], 1: [1], 2: [2, 3], 3: [4], 4: [5], 5: [6], 6: []}
    assert found["outer_out_from_outer_inp"] == {0: -1, 1: -1, 2: -1, 3: 0, 4: 1, 5: 2, 6: 5, 7: -1, 8: -1}
    assert found["inner_out_from_inner_inp"][6] == [2, 3]
    assert found["outer_inp_from_inner_out"] == {0: 3, 1: 4, 2: 5, 3: 5, 4: -1, 5: -1, 6: 6, 7: -1}


def test_roles_by_name():
    assert m.names_of(SPEC, "sequence") == ["x", "z"]
    assert m.names_of(SPEC, "sit-sot") == ["h"]
    assert m.names_of(SPEC, "mit-sot") == ["k"]
    assert m.names_of(SPEC, "mit-mot") == ["a"]
    assert m.names_of(SPEC, "nit-sot") == ["x", "y"]
    assert m.names_of(SPEC, "untraced") == ["r"]
    assert m.names_of(SPEC, "non-sequence") == ["w", "v"]
    assert m.names_of(SPEC, "condition") == ["until"]
    assert m.roles(SPEC)["a"] == "mit-mot"


def _chain():
    """Dependence that takes three iterations: x -> a -> b -> c; w only sets a shape; y reads c."""
    x, a, b, c, w = pt.dscalars("x", "a", "b", "c", "w")
    v = pt.dvector("v")
    spec = ScanSpec(
        sequences=(Sequence("x"),),
        states=(State("a"), State("b"), State("c")),
        outputs=(Output("y"),),
        invariants=(Invariant("w"), Invariant("v")),
    )
    y = c * pt.cast(v.shape[0], "float64")
    return Scan(spec, [x, a, b, c, w, v], [x * w, a + 1.0, b * 2.0, y])


def test_connections_close_over_iterations():
    T, F = True, False
    op = _chain()
    #     a  b  c  y
    assert m.connection_pattern(op) == [
        [F, F, F, F],  # number of steps
        [T, T, T, T],  # x
        [T, T, T, T],  # a
        [F, T, T, T],  # b
        [F, F, T, T],  # c
        [T, T, T, T],  # w
        [F, F, F, F],  # v: only its size
    ]
    assert m.connection_pattern(op) is not m.connection_pattern(op)


def test_the_number_of_steps_taken_depends_on_the_condition():
    h, w = pt.dscalars("h", "w")
    spec = ScanSpec(states=(State("h"),), invariants=(Invariant("w"),), is_while=True)
    op = Scan(spec, [h, w], [h * 2.0, pt.gt(h, w)])
    assert m.connection_pattern(op) == [[False, False], [True, True], [False, True]]


def test_nested_loops_are_looked_at_once(monkeypatch):
    calls = []
    original = m.reach
    monkeypatch.setattr(m, "reach", lambda *args: calls.append(1) or original(*args))
    h = pt.dscalar("h")
    op = Scan(ScanSpec(states=(State("h"),)), [h], [h * 0.5])
    depth = 12
    for _ in range(depth):
        h = pt.dscalar("h")
        inner = h
        for _ in range(3):
            inner = op(2, pt.shape_padleft(inner))[-1]
        op = Scan(ScanSpec(states=(State("h"),)), [h], [inner])
    assert m.connection_pattern(op) == [[False], [True]]
    assert len(calls) == depth + 1


def test_gradient_of_what_is_not_connected_is_refused():
    op = _chain()
    x, v = pt.dvectors("x", "v")
    starts = [pt.dvector(name) for name in "abc"]
    outputs = op(x.shape[0], x, *starts, pt.dscalar("w"), v)
    with pytest.raises(graphc.gradient.DisconnectedInputError, match="v"):
        graphc.grad(outputs[3].sum(), v)
    with pytest.raises(graphc.gradient.DisconnectedInputError, match="c"):
        graphc.grad(outputs[1].sum(), starts[2])
