# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ScanArgs`: parsing, editing and rebuilding a scan by role."""

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.errors import MissingInputError
from graphc.scan import Scan, ScanArgs, ScanSpec, roles, until
from graphc.scan import spec as specs

X = pt.matrix("X")
w = pt.scalar("w")


def example():
    """A node with most roles: its outputs are h, b, y."""
    counter = graphc.shared(np.int64(0), name="counter")

    def step(x0, x1, h, b2, b1, w):
        y = h + w
        y.name = "y"
        return [h + x0 * w, b1 + b2 - x1, y], {counter: counter + 1}, until(h.sum() > 50)

    infos = [pt.zeros(2), {"initial": pt.ones((2, 2)), "taps": [-2, -1]}, None]
    infos[0].name, infos[1]["initial"].name = "h", "b"
    outputs, updates = graphc.scan(
        step, {"input": X, "taps": [0, 1]}, infos, w, name="example", return_updates=True
    )
    node = outputs[2].owner
    assert isinstance(node.op, Scan)
    return node, list(updates.values())


def values(node, mode):
    return graphc.function([X, w], node.outputs, mode=mode)(np.arange(12.0).reshape(6, 2), 2.0)


EXPECTED_ROLES = {
    "X": "sequence",
    "h": "sit-sot",
    "b": "mit-sot",
    "y": "nit-sot",
    "counter": "untraced",
    "w": "non-sequence",
}


def test_roles():
    node, _ = example()
    assert roles(node) == roles(node.op) == EXPECTED_ROLES
    with pytest.raises(TypeError, match="needs a Scan"):
        roles(pt.exp(w).owner)


def test_parse():
    node, _ = example()
    args = ScanArgs.from_node(node)
    assert [
        [e.name for e in group] for group in (args.sequences, args.sit_sot, args.mit_sot, args.mit_mot)
    ] == [
        ["X"],
        ["h"],
        ["b"],
        [],
    ]
    assert [e.name for e in (*args.nit_sot, *args.untraced, *args.non_sequences)] == ["y", "counter", "w"]
    assert {e.name: e.taps for e in args.entries} == {
        "X": (0, 1),
        "h": (-1,),
        "b": (-2, -1),
        "y": (),
        "counter": (-1,),
        "w": (0,),
    }
    assert args["X"].outer_in is X and args["w"].outer_in is w
    assert args["y"].outer_out is node.outputs[2] and args["y"].outer_in is None
    assert len(args["b"].inner_in) == 2 and len(args["b"].inner_out) == 1
    assert args.condition is node.op.inner_outputs[-1]
    assert args.options["name"] == "example"
    assert "h" in args and "z" not in args
    assert args.entry_of(args["b"].inner_in[1]) is args["b"]
    assert args.entry_of(pt.scalar()) is None
    assert [e.name for e in args.dependents(args["w"])] == ["h", "y"]
    assert repr(args["b"]) == "mit-sot(b, taps=[-2, -1])"
    with pytest.raises(KeyError, match="no role named 'z'; it has X, h"):
        args["z"]
    with pytest.raises(TypeError, match="needs an application of Scan"):
        ScanArgs(pt.exp(w).owner)


def test_round_trip(mode):
    node, _ = example()
    args = ScanArgs(node)
    again = args.rebuild()
    assert again.op.spec == node.op.spec and again.op.name == "example"
    assert [v.type for v in again.outputs] == [v.type for v in node.outputs]
    for a, b in zip(values(again, mode), values(node, mode), strict=True):
        np.testing.assert_array_equal(a, b)
    assert args.replacements(again) == dict(zip(node.outputs, again.outputs, strict=True))


def test_round_trip_of_options_and_large_constants(mode):
    table = np.arange(40.0)
    _carry, ys = graphc.loop(
        lambda c, x: (c + x, c * table[:20].sum() + table), 0.0, X[:, 0], reverse=True, unroll=2
    )
    node = ys.owner
    again = ScanArgs(node).rebuild()
    assert (again.op.reverse, again.op.unroll) == (True, 2)
    a, b = (graphc.function([X], n.outputs, mode=mode)(np.ones((3, 1))) for n in (node, again))
    for left, right in zip(a, b, strict=True):
        np.testing.assert_array_equal(left, right)


def test_remove(mode):
    node, _ = example()
    args = ScanArgs(node)
    args.remove(args["y"], args["counter"], args["b"])
    smaller = args.rebuild()
    assert set(roles(smaller)) == {"X", "h", "w"}
    kept = args.replacements(smaller)
    assert set(kept) == {node.outputs[0], node.outputs[-1]}
    np.testing.assert_array_equal(values(smaller, mode)[0], values(node, mode)[0])
    args.remove(args["w"])
    with pytest.raises(MissingInputError):
        args.rebuild()


def test_add_and_replace(mode):
    node, _ = example()
    args = ScanArgs(node)
    k = args.add_non_sequence("k", w * 3)
    z = args.add_sequence("z", X[:, 0])
    total = args.add_state("total", pt.zeros(1), taps=[-1])
    (k_in,), (z_in,), (t_in,) = k.inner_in, z.inner_in, total.inner_in
    args.replace(total, inner_out=t_in + k_in * z_in)
    args.add_output("y", args["h"].inner_in[0] * 2)  # the name is taken
    with pytest.raises(ValueError, match=r"untraced.*must compute 1 values"):
        extra = args.add_untraced("extra", w)
        args.rebuild()
    args.remove(extra)
    args.replace(args["h"], name="hidden")
    new = args.rebuild()
    assert roles(new)["total"] == "sit-sot" and roles(new)["y_2"] == "nit-sot" and "hidden" in roles(new)
    found = dict(zip(new.op.spec.outer_output_names(), values(new, mode), strict=True))
    steps = int(found["n_steps"])
    np.testing.assert_allclose(found["total"], np.concatenate([[0.0], np.cumsum(6.0 * 2 * np.arange(steps))]))
    np.testing.assert_allclose(found["y_2"], 2 * found["hidden"][:-1])


def test_substitute(mode):
    node, _ = example()
    args = ScanArgs(node)
    args.substitute({args["w"].inner_in[0]: pt.as_tensor(2.0)})
    args.remove(args["w"])
    new = args.rebuild()
    assert "w" not in roles(new)
    a = graphc.function([X], new.outputs, mode=mode)(np.arange(12.0).reshape(6, 2))
    for left, right in zip(a, values(node, mode), strict=True):
        np.testing.assert_array_equal(left, right)


def test_several_writes():
    state = specs.State("g", (-2, -1), (-1, 0))
    g1, g2 = pt.scalars("g1", "g2")
    op = Scan(ScanSpec(states=(state,)), [g1, g2], [g1 + g2, g2])
    node = op.make_node(pt.as_tensor(3), pt.zeros(2))
    args = ScanArgs(node)
    assert [e.name for e in args.mit_mot] == ["g"] and roles(op) == {"g": "mit-mot"}
    assert args.rebuild().op.spec == op.spec
