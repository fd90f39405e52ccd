# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients of programs that use few rows: nothing of the size of the loop is made for the others."""

from __future__ import annotations

import numpy as np
import pytest
from scan_modes import MODES

import graphc
import graphc.tensor as pt
from graphc.gradient import verify_grad
from graphc.graph.traversal import toposort
from graphc.scan.gradient.sparse import Block, Rows, output_pieces, state_pieces, terms_of
from graphc.scan.op import Scan
from graphc.scan.spec import Output, ScanSpec, Sequence, State

rng = np.random.default_rng(11)


def loop(taps=(-1,), reverse=False, row=()):
    type_ = pt.TensorType("float64", row)
    x, *hs = (type_.make_variable() for _ in range(1 + len(taps)))
    new = pt.sin(hs[0]) * x + sum(hs[1:], 0.5 * hs[0])
    spec = ScanSpec((Sequence("x"),), (State("h", taps),), (Output("y"),))
    return Scan(spec, [x, *hs], [new, hs[0] * x], reverse=reverse)


def reverse_loops(cost, wrt):
    """The loops that only the gradient has, as nodes."""
    forward = set(toposort([cost]))
    gradients = graphc.grad(cost, wrt)
    return [v for v in toposort(gradients) if isinstance(v.op, Scan) and v not in forward]


def sequences_of(node):
    count = len(node.op.spec.sequences)
    return {s.name: v for s, v in zip(node.op.spec.sequences, node.inputs[1 : count + 1], strict=True)}


LAST = {
    "last step": lambda h, y, k: h[k:][-1],
    "last row": lambda h, y, k: h[-1],
    "slices of slices": lambda h, y, k: h[k:][1:][1:][-1],
    "two terms": lambda h, y, k: h[k:][-1] ** 2 + pt.sin(h[-1]),
    "last rows": lambda h, y, k: h[-k:].sum(),
    "part of the last row": lambda h, y, k: h[-1:].sum() * h[-1],
    "last output": lambda h, y, k: y[-1],
    "last of everything": lambda h, y, k: y[-1] * h[k:][-1] + h[0],
}


@pytest.mark.parametrize("taps", [(-1,), (-3, -1)])
@pytest.mark.parametrize("use", LAST)
def test_last_rows_are_no_sequence(use, taps):
    X, H = pt.dvector("X"), pt.dvector("H")
    hs, ys = loop(taps)(X.shape[0], X, H)
    cost = LAST[use](hs, ys, -taps[0])
    (node,) = reverse_loops(cost, [X, H])
    # The state's trace and the forward sequence are read, and no cotangents.
    assert set(sequences_of(node)) == {"h", "x"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("use", LAST)
def test_their_gradients_are_right(use, reverse, mode):
    def program(X, H):
        hs, ys = loop((-3, -1), reverse)(X.shape[0], X, H)
        if reverse:
            hs, ys = hs[::-1], ys[::-1]
        return LAST[use](hs, ys, 3)

    verify_grad(program, [rng.normal(size=4), rng.normal(size=3)], mode=mode, n_tests=1)


def test_reversed_loops_store_the_last_row_first():
    X, H = pt.dvector("X"), pt.dvector("H")
    hs, ys = loop((-2, -1), reverse=True)(X.shape[0], X, H)
    (node,) = reverse_loops(hs[0] + hs[:-2][0] + hs[:2].sum() + ys[0], [X, H])
    assert set(sequences_of(node)) == {"h", "x"}


def test_all_steps_are_a_sequence_without_a_copy():
    X, H, G = pt.dvector("X"), pt.dvector("H"), pt.dvector("G")
    hs, _ = loop()(X.shape[0], X, H)
    gradients = graphc.pullback(hs[1:], [X, H], G)
    (node,) = (v for v in toposort(gradients) if isinstance(v.op, Scan) and v is not hs.owner)
    assert sequences_of(node)["d_h"] is G
    assert gradients[0].owner is node, "the cotangent of a sequence of the loop's length is a trace"


@pytest.mark.parametrize("taps, reverse", [((-1,), False), ((-3, -1), False), ((-3, -1), True)])
def test_without_iterations_the_last_row_is_an_initial_row(taps, reverse):
    X, H = pt.dvector("X"), pt.dvector("H")
    hs, _ = loop(taps, reverse)(X.shape[0], X, H)
    cost = (hs[0] if reverse else hs[-1]) + hs.sum()
    f = graphc.function([X, H], graphc.grad(cost, [X, H]), mode="reference")
    d_x, d_h = f([], np.ones(-taps[0]))
    assert d_x.shape == (0,)
    np.testing.assert_array_equal(d_h, [1.0] * (-taps[0] - 1) + [2.0])


def test_only_the_initial_rows_are_used():
    X, H = pt.dvector("X"), pt.dvector("H")
    hs, _ = loop((-2,))(X.shape[0], X, H)
    cost = hs[0] * 2.0 + hs[:2].sum()
    assert not reverse_loops(cost, [X, H][1:])
    np.testing.assert_array_equal(
        graphc.grad(cost, H).eval({X: np.ones(3), H: np.ones(2)}, mode="reference"), [3.0, 1.0]
    )


def test_terms():
    y, g, row = pt.dmatrix("y"), pt.dmatrix("g"), pt.dvector("row")
    zeros = pt.zeros_like(y)

    def put(index, value):
        return pt.inc_subtensor(zeros[index], value)

    assert terms_of(zeros) == []
    assert terms_of(g) == [Rows(0, 0, g)]
    assert terms_of(put(slice(2, None), g)) == [Rows(2, 0, g)]
    (term,) = terms_of(put(-1, row))
    assert isinstance(term, Block) and (term.first, term.count) == (-1, 1)
    (term,) = terms_of(put(3, row))
    assert isinstance(term, Block) and (term.first, term.count) == (3, 1)
    assert [type(t) for t in terms_of(put(-1, row) + put(slice(None, -1), g) + g)] == [Block, Rows, Rows]
    # Part of a row is a row of zeros with that part.
    (term,) = terms_of(put((-1, slice(1, 3)), row))
    assert isinstance(term, Block) and term.value.type.ndim == 2
    # What cannot be taken apart stays.
    n = pt.lscalar("n")
    for dense in (
        put(n, row),
        put(slice(None, None, 2), g),
        put(slice(-3, None), g),
        put((slice(None), 0), row),
    ):
        assert terms_of(dense) == [Rows(0, 0, dense)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("oldest", [0, 1, 2])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_pieces_add_up(n, oldest, reverse):
    """Every row is in one piece, at the place where the reverse loop expects it."""
    window, g = 3, pt.dvector("g")
    pieces = state_pieces(g, window, oldest, pt.dvector("start"), reverse)
    rows = np.arange(1.0, n + window + 1)
    start = np.zeros(window)
    values = [_value(piece, rows, start) for piece in (pieces.steps, pieces.window, pieces.initial)]
    steps, newest, oldest_rows = values
    total = np.zeros(n + window)
    total[:window] += oldest_rows
    total[window - oldest : window - oldest + n] += steps[::-1] if reverse else steps
    total[n:] += newest[::-1]
    np.testing.assert_array_equal(total, rows[::-1] if reverse else rows)


def _value(piece, rows, start):
    if piece is None:
        return np.zeros_like(start)
    found = {v.name: v for v in graphc.graph.traversal.explicit_graph_inputs(piece)}
    values = {found[name]: value for name, value in (("g", rows), ("start", start)) if name in found}
    return piece.eval(values, mode="reference")


def test_pieces_of_outputs():
    g, y, row = pt.dvector("g"), pt.dvector("y"), pt.dscalar("row")
    last = pt.inc_subtensor(pt.zeros_like(y)[-1], row)
    assert output_pieces(g, False) == (g, None)
    assert output_pieces(last, False)[0] is None
    steps, row_of_last = output_pieces(last + g, False)
    assert steps is g and row_of_last is not None
    assert output_pieces(last, True)[1] is None


def test_checkpoints_read_no_trace():
    """The reverse loop over segments reads windows, one for each segment, instead of the trace."""
    X, H = pt.dvector("X"), pt.dvector("H")
    plain = loop()
    op = Scan(plain.spec, plain.inner_inputs, plain.inner_outputs, checkpoint_every=10, name="long")
    hs, _ = op(X.shape[0], X, H)
    gradients = graphc.grad(hs[-1], [X, H])
    loops = [node for node in toposort(gradients) if isinstance(node.op, Scan)]
    assert all(node is not hs.owner for node in loops)
    assert sorted(str(node.op.name) for node in loops) == [
        "gradient of long", "gradient of segments of long", "long", "segments of long",
    ]  # fmt: skip
    n = 37
    x, h = rng.normal(size=n), rng.normal(size=1)
    expected = graphc.grad(plain(X.shape[0], X, H)[0][-1], [X, H])
    f = graphc.function([X, H], [*gradients, *expected], mode="reference")
    found = f(x, h)
    np.testing.assert_allclose(found[0], found[2])
    np.testing.assert_allclose(found[1], found[3])


def test_checkpoints_must_be_at_least_one_iteration_apart():
    X, H = pt.dvector("X"), pt.dvector("H")
    plain = loop()
    op = Scan(plain.spec, plain.inner_inputs, plain.inner_outputs, checkpoint_every=0)
    with pytest.raises(ValueError, match=r"checkpoint_every.*at least 1, got 0"):
        graphc.grad(op(X.shape[0], X, H)[0][-1], H)
