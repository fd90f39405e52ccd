# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pickles and copies of graphs, shallow and deep ones."""

import copy
import pickle
import sys

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.graph.traversal import ancestors
from graphc.transforms.op_from_graph import OpFromGraph


def chain(n):
    x = pt.vector("x")
    y = x
    for _ in range(n):
        y = pt.sin(y) + 1
    return x, y


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


COPIES = pytest.mark.parametrize("copied", [copy.deepcopy, through_pickle])


@COPIES
def test_deep_chains(copied):
    x, y = copied(list(chain(4000)))
    assert [v for v in ancestors([y]) if v.owner is None and v.name == "x"] == [x]
    node = copied(OpFromGraph([x], [y])(x).owner)
    assert len(node.op.fgraph.nodes) == 8000


@COPIES
def test_identities(copied):
    """What several variables share is shared by their copies too, whatever is copied first."""
    x, s = pt.vector("x"), graphc.shared(np.ones(3), name="s")
    shared = pt.exp(x)
    shared.tag.note = ["kept"]
    a, b = shared + s, pt.linalg.qr(shared[:, None])
    b[0].name = "factor"
    s.default_update = shared
    for order in ([x, shared, a, *b, s], [*b, a, shared, s, x], [a, b[1], b[0], s, shared, x]):
        made = dict(zip([id(v) for v in order], copied(order), strict=True))
        new_x, new_shared, new_a, new_s = (made[id(v)] for v in (x, shared, a, s))
        first, second = (made[id(v)] for v in b)
        assert new_a.owner.inputs == [new_shared, new_s] and new_shared.owner.inputs == [new_x]
        assert first.owner is second.owner and first.owner.outputs == [first, second]
        assert first.owner.inputs[0].owner.inputs == [new_shared] and first.name == "factor"
        assert new_s.default_update is new_shared and new_shared.tag.note == ["kept"]
        assert new_a.location == a.location and new_a.type == a.type
        assert new_x is not x and new_shared is not shared
    assert copied(a).owner is not a.owner and copied(a.owner).op == a.owner.op


def test_copies_of_one_variable():
    """`copy.copy` makes another output of the same node."""
    y = pt.exp(pt.vector("x"))
    other = copy.copy(y)
    assert other is not y and other.owner is y.owner and other.type == y.type
    assert copy.copy(y.owner).inputs == y.owner.inputs


def test_copies_compute():
    x, y = chain(3)
    new_x, new_y = copy.deepcopy((x, y))
    f, g = graphc.function([x], y), graphc.function([new_x], new_y)
    np.testing.assert_array_equal(f([1.0, 2.0]), g([1.0, 2.0]))


def test_many_operands_within_a_small_stack():
    """Sums of many sizes are as deep as there are operands; no pass goes into them by recursion."""
    xs = [pt.vector() for _ in range(150)]
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    limit = sys.getrecursionlimit()
    joined = pt.concatenate(xs)
    sys.setrecursionlimit(depth + 140)
    try:
        f = graphc.function(xs, joined)
    finally:
        sys.setrecursionlimit(limit)
    assert f(*[np.ones(2)] * 150).shape == (300,)
