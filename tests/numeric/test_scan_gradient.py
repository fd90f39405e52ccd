# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of loops against hand-written results and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scan_modes import MODES

import graphc
import graphc.tensor as pt
from graphc.gradient import hessian, hessian_vector_product, jacobian, verify_grad
from graphc.scan.op import Scan
from graphc.scan.spec import Invariant, Output, ScanSpec, Sequence, State, Untraced

rng = np.random.default_rng(7)
modes = pytest.mark.parametrize("mode", MODES)


def ar1(row=(), dtype="float64", **options):
    """``h = a * h + x``."""
    type_ = pt.TensorType(dtype, row)
    x, h, a = type_.make_variable("x"), type_.make_variable("h"), type_.make_variable("a")
    spec = ScanSpec(sequences=(Sequence("x"),), states=(State("h"),), invariants=(Invariant("a"),))
    return Scan(spec, [x, h, a], [a * h + x], name="ar1", **options)


def ar1_by_hand(x, h0, a, g):
    """Value, and cotangents of x, h0 and a, for cotangents g of the steps."""
    hs = [h0]
    for row in x:
        hs.append(a * hs[-1] + row)
    d, d_a, d_x = np.zeros_like(h0), np.zeros_like(a), np.zeros_like(x)
    for t in reversed(range(len(x))):
        d = d + g[t]
        d_x[t] = d
        d_a = d_a + d * hs[t]
        d = d * a
    return np.array(hs), d_x, d, d_a


@modes
@pytest.mark.parametrize("row", [(), (3,), (2, 3)])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_one_state(mode, row, n):
    x, h0, a = rng.normal(size=(n, *row)), rng.normal(size=row), rng.normal(size=row)
    g = rng.normal(size=(n, *row))
    X, G = (pt.tensor(dtype="float64", shape=(None, *row)) for _ in range(2))
    H, A = pt.tensor(dtype="float64", shape=(1, *row)), pt.tensor(dtype="float64", shape=row)
    hs = ar1(row)(X.shape[0], X, H, A)
    f = graphc.function([X, H, A, G], [hs, *graphc.pullback(hs[1:], [X, H, A], G)], mode=mode)
    values, d_x, d_h, d_a = f(x, h0[None], a, g)
    expected = ar1_by_hand(x, h0, a, g)
    np.testing.assert_allclose(values, expected[0])
    np.testing.assert_allclose(d_x, expected[1])
    np.testing.assert_allclose(d_h[0], expected[2])
    np.testing.assert_allclose(d_a, expected[3])


@modes
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_dtype_is_kept(mode, dtype, reverse):
    X, H, A = (pt.vector(dtype=dtype), pt.tensor(dtype=dtype, shape=(1,)), pt.scalar(dtype=dtype))
    hs = ar1(dtype=dtype, reverse=reverse)(X.shape[0], X, H, A)
    steps = hs[:-1] if reverse else hs[1:]
    gradients = graphc.grad((steps**2).sum(), [X, H, A])
    assert [g.type.dtype for g in gradients] == [dtype] * 3
    x, h0, a = rng.normal(size=4), rng.normal(size=1), 0.7
    values = [np.asarray(v, dtype) for v in (x, h0, a)]
    found = graphc.function([X, H, A], gradients, mode=mode)(*values)
    ordered = x[::-1] if reverse else x
    hs = ar1_by_hand(ordered, h0[0], a, np.zeros(4))[0]
    expected = ar1_by_hand(ordered, h0[0], a, 2 * hs[1:])[1:]
    np.testing.assert_allclose(found[0], expected[0][::-1] if reverse else expected[0], rtol=1e-4)
    np.testing.assert_allclose(found[1][0], expected[1], rtol=1e-4)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-4)


def test_a_complex_state_is_differentiated():
    X, H, A = pt.vector(dtype="complex128"), pt.tensor(dtype="complex128", shape=(1,)), pt.zscalar()
    hs = ar1(dtype="complex128")(X.shape[0], X, H, A)
    cost = (abs(hs[1:]) ** 2).sum()
    x, h0, a = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in (3, 1, ()))
    f = graphc.function([X, H, A], [cost, *graphc.grad(cost, [X, H, A])], mode="reference")

    def value(*arguments):
        return float(f(*arguments)[0])

    found = f(x, h0, a)[1:]
    for i, (v, g) in enumerate(zip((x, h0, np.asarray(a)), found, strict=True)):
        for index in np.ndindex(*v.shape):
            slopes = []
            for unit in (1.0, 1j):
                ends = []
                for sign in (1, -1):
                    moved = [np.array(u) for u in (x, h0, a)]
                    moved[i][index] += sign * 1e-6 * unit
                    ends.append(value(*moved))
                slopes.append((ends[0] - ends[1]) / 2e-6)
            np.testing.assert_allclose(g[index], slopes[0] + 1j * slopes[1], rtol=1e-5)


def gaps(reverse=False):
    """``h = sin(h[-3]) * x[0] + h[-1] * x[2]``, and ``y = h[-3] ** 2``."""
    x0, x2, h3, h1 = pt.dscalars("x0", "x2", "h3", "h1")
    spec = ScanSpec((Sequence("x", (0, 2)),), (State("h", (-3, -1)),), (Output("y"),))
    return Scan(spec, [x0, x2, h3, h1], [pt.sin(h3) * x0 + h1 * x2, h3**2], reverse=reverse, name="gaps")


def gaps_in_numpy(n, x, h, reverse):
    rows, ys = list(h), []
    for s in range(n):
        t = n - 1 - s if reverse else s
        ys.append(rows[s] ** 2)
        rows.append(np.sin(rows[s]) * x[t] + rows[s + 2] * x[t + 2])
    return (np.array(rows[::-1]), np.array(ys[::-1])) if reverse else (np.array(rows), np.array(ys))


@modes
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
def test_taps_with_gaps_and_a_longer_sequence(mode, n, reverse):
    x, h = rng.normal(size=n + 4), rng.normal(size=3)

    def program(X, H):
        return gaps(reverse)(pt.constant(n, dtype="int64"), X, H)

    X, H = pt.dvector(), pt.dvector()
    found = graphc.function([X, H], program(X, H), mode=mode)(x, h)
    for value, expected in zip(found, gaps_in_numpy(n, x, h, reverse), strict=True):
        np.testing.assert_allclose(value, expected.reshape(value.shape))
    verify_grad(program, [x, h], mode=mode)


@pytest.mark.parametrize("reverse", [False, True])
def test_second_and_third_derivatives_with_several_taps(reverse):
    n, x, h = 4, rng.normal(size=6), rng.normal(size=3)

    def first(X, H):
        hs, ys = gaps(reverse)(pt.constant(n, dtype="int64"), X, H)
        return graphc.grad((hs**2).sum() + ys.sum(), [X, H])

    def second(X, H):
        return graphc.grad(sum((g**2).sum() for g in first(X, H)), [X, H])

    verify_grad(first, [x, h], mode="reference")
    verify_grad(second, [x, h], mode="reference", n_tests=1)


@modes
def test_hessian_and_hessian_vector_product_agree(mode):
    X, H = pt.dvector("X"), pt.dvector("H")
    p = pt.dvector("p")
    hs, ys = gaps()(X.shape[0] - 2, X, H)
    cost = pt.tanh(hs[3:]).sum() + ys[-1]
    mixed = graphc.pushforward(graphc.grad(cost, X), X, p)
    f = graphc.function([X, H, p], [hessian(cost, X), hessian_vector_product(cost, X, p), mixed], mode=mode)
    direction = rng.normal(size=7)
    matrix, product, forward = f(rng.normal(size=7), rng.normal(size=3), direction)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(matrix @ direction, product, rtol=1e-9)
    np.testing.assert_allclose(forward, product, rtol=1e-9)


@modes
def test_jacobian_of_all_rows(mode):
    X, H, A = pt.dvector("X"), pt.tensor(dtype="float64", shape=(1,)), pt.dscalar("A")
    hs = ar1()(X.shape[0], X, H, A)[1:]
    f = graphc.function([X, H, A], jacobian(hs, [X, H]), mode=mode)
    by_x, by_h = f(np.zeros(4), [1.0], 0.5)
    powers = 0.5 ** np.arange(5.0)
    expected = np.array([[powers[i - j] if i >= j else 0.0 for j in range(4)] for i in range(4)])
    np.testing.assert_allclose(by_x, expected)
    np.testing.assert_allclose(by_h[:, 0], powers[1:])


@modes
def test_states_that_read_each_other_and_a_matrix_invariant(mode):
    u, v, w = pt.dvector("u"), pt.dvector("v"), pt.dmatrix("w")
    spec = ScanSpec(states=(State("u"), State("v")), invariants=(Invariant("w"),))
    op = Scan(spec, [u, v, w], [pt.tanh(v @ w), u * v])

    def program(U, V, W):
        us, vs = op(pt.constant(3, dtype="int64"), U, V, W)
        return us[-1], vs[1:]

    verify_grad(program, [rng.normal(size=s) for s in ((1, 3), (1, 3), (3, 3))], mode=mode)


@modes
def test_nested_loops(mode):
    """The outer loop runs ``h = h * x + w`` three times an iteration, over the elements of its row."""
    x, h, w = pt.dscalars("x", "h", "w")
    inner = Scan(
        ScanSpec((Sequence("x"),), (State("h"),), (), (), (Invariant("w"),)), [x, h, w], [pt.sin(h) * x + w]
    )
    row, g, v = pt.dvector("row"), pt.dscalar("g"), pt.dscalar("v")
    last = inner(row.shape[0], row, pt.shape_padleft(g), v)[-1]
    spec = ScanSpec((Sequence("row"),), (State("g"),), (), (), (Invariant("v"),))
    op = Scan(spec, [row, g, v], [last * v])

    def program(X, G, V):
        return op(X.shape[0], X, G, V)[1:]

    def gradient(X, G, V):
        return graphc.grad((program(X, G, V) ** 2).sum(), [X, G, V])

    values = [rng.normal(size=(4, 3)), rng.normal(size=1), np.asarray(0.8)]
    verify_grad(program, values, mode=mode)
    verify_grad(gradient, values, mode=mode, n_tests=1)


@modes
@pytest.mark.parametrize("start, taken", [(0.5, 4), (3.0, 2), (20.0, 1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_gradient_goes_over_the_iterations_that_were_made(mode, start, taken, reverse):
    x, h = pt.dscalars("x", "h")
    spec = ScanSpec((Sequence("x"),), (State("h"),), is_while=True)
    op = Scan(spec, [x, h], [h * x, pt.gt(h * x, 15.0)], reverse=reverse)
    X, H = pt.dvector(), pt.dvector()
    hs, n = op(X.shape[0], X, H)
    cost = hs[0] if reverse else hs[-1]
    values = np.array([2.5, 2.25, 3.0, 2.75, 3.5, 2.0])
    used = values[::-1] if reverse else values
    steps, d_x, d_h = graphc.function([X, H], [n, *graphc.grad(cost, [X, H])], mode=mode)(values, [start])
    assert steps == taken
    product = np.prod(used[:taken])
    expected = np.zeros(6)
    expected[:taken] = start * product / used[:taken]
    np.testing.assert_allclose(d_x, expected[::-1] if reverse else expected)
    np.testing.assert_allclose(d_h, [product])


@modes
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 3, 5, 9])
def test_a_truncated_gradient_stops_after_some_iterations(mode, limit, reverse):
    n = 5
    X, H, A = pt.dvector("X"), pt.tensor(dtype="float64", shape=(1,)), pt.dscalar("A")
    hs = ar1(reverse=reverse, truncate_gradient=limit)(X.shape[0], X, H, A)
    steps = hs[:-1] if reverse else hs[1:]
    x, h0, a = rng.normal(size=n), rng.normal(size=1), 0.8
    weights = np.arange(1.0, n + 1)
    found = graphc.function(
        [X, H, A], graphc.grad((steps * weights).sum(), [X, H, A], disconnected_inputs="ignore"), mode=mode
    )(x, h0, a)
    ordered, g = (x[::-1], weights[::-1]) if reverse else (x, weights)
    rows = ar1_by_hand(ordered, h0[0], a, g)[0]
    skipped = max(n - limit, 0)
    _, d_x, d_h, d_a = ar1_by_hand(ordered[skipped:], rows[skipped], a, g[skipped:])
    d_x = np.concatenate([np.zeros(skipped), d_x])
    np.testing.assert_allclose(found[0], d_x[::-1] if reverse else d_x)
    np.testing.assert_allclose(found[1], [d_h if skipped == 0 else 0.0])
    np.testing.assert_allclose(found[2], d_a)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_truncation_with_taps_that_reach_initial_rows(limit):
    """With K = 3 rows, a gradient over the last 2 of 4 iterations still reads the last initial row."""
    n, x, h = 4, rng.normal(size=6), rng.normal(size=3)
    op = gaps()
    limited = Scan(op.spec, op.inner_inputs, op.inner_outputs, truncate_gradient=limit)
    X, H = pt.dvector(), pt.dvector()
    by_x, by_h = graphc.grad(limited(X.shape[0] - 2, X, H)[0][3:].sum(), [X, H])
    # The same with rows that earlier iterations computed given as numbers.
    rows = gaps_in_numpy(n, x, h, False)[0]
    skipped = n - limit
    part = gaps()(X.shape[0] - 2, X, H)[0][3:].sum()
    d_x, d_h = graphc.function([X, H], graphc.grad(part, [X, H]), mode="reference")(
        x[skipped:], rows[skipped : skipped + 3]
    )
    found = graphc.function([X, H], [by_x, by_h], mode="reference")(x, h)
    np.testing.assert_allclose(found[0], np.concatenate([np.zeros(skipped), d_x]))
    kept = max(3 - skipped, 0)
    np.testing.assert_allclose(found[1], np.concatenate([np.zeros(3 - kept), d_h[:kept]]))


@modes
def test_integer_states_and_sequences_are_values(mode):
    """``h = h * w ** k`` where the integer state k counts, and an integer sequence is cast."""
    k, h, s, w = pt.lscalar("k"), pt.dscalar("h"), pt.iscalar("s"), pt.dscalar("w")
    spec = ScanSpec((Sequence("s"),), (State("k"), State("h")), (), (), (Invariant("w"),))
    factor = w ** pt.cast(k, "float64") * pt.cast(s, "float64")
    op = Scan(spec, [s, k, h, w], [k + 1, h * factor])
    S, K, H, W = pt.ivector("S"), pt.lvector("K"), pt.dvector("H"), pt.dscalar("W")
    _, hs = op(S.shape[0], S, K, H, W)
    gradients = graphc.grad(hs[-1], [H, W, S, K])
    assert [g.type.dtype for g in gradients] == ["float64"] * 4
    f = graphc.function([S, K, H, W], [hs[-1], *gradients], mode=mode)
    s = np.array([2, 3, 1], "int32")
    value, d_h, d_w, d_s, d_k = f(s, [1], [0.5], 1.5)
    np.testing.assert_allclose(value, 0.5 * 6 * 1.5**6)
    np.testing.assert_allclose(d_h, [6 * 1.5**6])
    np.testing.assert_allclose(d_w, 0.5 * 6 * 6 * 1.5**5)
    np.testing.assert_allclose(d_s, value / s)
    np.testing.assert_array_equal(d_k, [0.0])


def test_the_number_of_steps_is_not_connected():
    n, H = pt.lscalar("n"), pt.dvector("H")
    hs = gaps()(n, pt.constant(np.ones(30)), H)[0]
    with pytest.raises(graphc.gradient.DisconnectedInputError, match="n of type"):
        graphc.grad(hs.sum(), n)


def untraced(dtype):
    """A counter c outside of the trace; ``h = h * w + c``."""
    c, h, w = pt.scalar("c", dtype=dtype), pt.dscalar("h"), pt.dscalar("w")
    spec = ScanSpec(states=(State("h"),), untraced=(Untraced("c"),), invariants=(Invariant("w"),))
    return Scan(spec, [h, c, w], [h * w + pt.sin(pt.cast(c, "float64") * w), (c * 2).astype(dtype)])


@modes
@pytest.mark.parametrize("checkpoint", [None, 2])
def test_values_of_untraced_states_are_computed_again(mode, checkpoint):
    op = untraced("int64")
    op = Scan(op.spec, op.inner_inputs, op.inner_outputs, checkpoint_every=checkpoint)

    def program(H, W):
        return op(pt.constant(5, dtype="int64"), H, pt.constant(1, dtype="int64"), W)[0][1:]

    verify_grad(program, [rng.normal(size=1), np.asarray(0.6)], mode=mode)


def test_gradients_pass_through_an_untraced_float_state():
    H, C, W = pt.dvector("H"), pt.dscalar("C"), pt.dscalar("W")
    hs, last = untraced("float64")(4, H, C, W)
    reverse = [graphc.grad(hs.sum(), v) for v in (H, C, W)] + [graphc.grad(last, C)]
    ones = {H: pt.constant([1.0]), C: pt.constant(1.0), W: pt.constant(1.0)}
    forward = [graphc.pushforward(hs.sum(), v, ones[v]) for v in (H, C, W)]
    forward.append(graphc.pushforward(last, C, ones[C]))
    f = graphc.function([H, C, W], [*reverse, *forward], mode="reference")
    found = [np.sum(value) for value in f([1.0], 2.0, 0.5)]
    np.testing.assert_allclose(found[:4], found[4:], rtol=1e-12)
    assert found[3] == 16.0 and all(found[:3])


def test_forward_mode_passes_through_an_untraced_state():
    C, W = pt.dscalar("C"), pt.dscalar("W")
    last = untraced("float64")(4, pt.constant([1.0]), C, W)[1]
    t = graphc.pushforward(last, C, pt.constant(1.0))
    np.testing.assert_allclose(t.eval({C: 0.3, W: 0.5}, mode="reference", on_unused_input="ignore"), 16.0)


def test_an_undefined_rule_in_the_body_is_reported():
    h, w = pt.dscalars("h", "w")
    spec = ScanSpec(states=(State("h"),), invariants=(Invariant("w"),))
    op = Scan(spec, [h, w], [h * graphc.gradient.undefined_grad(w)])
    H, W = pt.dvector("H"), pt.dscalar("W")
    hs = op(3, H, W)
    with pytest.raises(graphc.gradient.NullTypeGradError, match="undefined_grad"):
        graphc.grad(hs.sum(), W)
    assert graphc.grad(hs.sum(), H).eval({H: [1.0], W: 2.0}, mode="reference") == pytest.approx(15.0)


def test_mit_mot_gradients_cannot_be_truncated():
    a2, a1 = pt.dscalars("a2", "a1")
    op = Scan(
        ScanSpec(states=(State("a", (-2, -1), (-1, 0)),)), [a2, a1], [a1 * 2.0, a2], truncate_gradient=1
    )
    H = pt.dvector()
    with pytest.raises(NotImplementedError, match="mit-mot"):
        graphc.grad(op(4, H)[-1], H)
