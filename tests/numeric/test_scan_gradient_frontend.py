# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of loops that users write."""

from __future__ import annotations

import numpy as np
import pytest
from scan_modes import MODES

import graphc
import graphc.tensor as pt
from graphc.gradient import verify_grad
from graphc.graph.basic import Apply
from graphc.graph.op import Op
from graphc.graph.type import Type

rng = np.random.default_rng(5)
modes = pytest.mark.parametrize("mode", MODES)
N = 5


def every_role(x, h, k, w, **options):
    """All kinds of inputs and outputs, and a captured variable."""

    def step(x0, x1, h1, k3, k1, w):
        new = pt.tanh(h1 * w + x0)
        return new, k3 * 0.5 + k1 * x1 + captured * new, new * k1

    captured = w * 2.0
    return graphc.scan(
        step,
        sequences=[{"input": x, "taps": [-1, 1]}],
        outputs_info=[h, {"initial": k, "taps": [-3, -1]}, None],
        non_sequences=[w],
        **options,
        return_updates=False,
    )


VALUES = [rng.normal(size=s) for s in ((N + 2,), (), (3,), ())]


@modes
@pytest.mark.parametrize("options", [{}, {"go_backwards": True}, {"n_steps": 3}, {"checkpoint_every": 2}])
def test_every_role(mode, options):
    verify_grad(lambda *xs: every_role(*xs, **options), VALUES, mode=mode)


@pytest.mark.parametrize("options", [{}, {"go_backwards": True}, {"n_steps": 1}, {"checkpoint_every": 3}])
def test_second_derivatives(options):
    def gradient(*xs):
        h, k, y = every_role(*xs, **options)
        return graphc.grad(h[-1] ** 2 + (k**2).sum() + y[-1], list(xs))

    verify_grad(gradient, VALUES, mode="reference")


@modes
def test_no_steps_give_zeros(mode):
    xs = [pt.dvector("x"), pt.dscalar("h"), pt.dvector("k"), pt.dscalar("w")]
    h, k, y = every_role(*xs)
    gradients = graphc.grad(h.sum() + k.sum() + y.sum(), xs)
    found = graphc.function(xs, gradients, mode=mode)(np.ones(2), 1.0, np.ones(3), 1.0)
    for value, shape in zip(found, [(2,), (), (3,), ()], strict=True):
        np.testing.assert_array_equal(value, np.zeros(shape))


@modes
@pytest.mark.parametrize("limit", [1, 2, 4, 8])
def test_truncation_gives_the_gradient_of_the_last_steps(mode, limit):
    """``h = h * w``: the last of N steps depends on w by ``min(limit, N)`` factors."""
    h, w = pt.dscalar("h"), pt.dscalar("w")
    hs = graphc.scan(
        lambda h, w: h * w,
        outputs_info=[h],
        non_sequences=[w],
        n_steps=N,
        truncate_gradient=limit,
        return_updates=False,
    )
    d_w, d_h = graphc.grad(hs[-1], [w, h])
    found = graphc.function([h, w], [d_w, d_h], mode=mode)(2.0, 1.5)
    np.testing.assert_allclose(found[0], min(limit, N) * 2.0 * 1.5 ** (N - 1))
    np.testing.assert_allclose(found[1], 1.5**N if limit >= N else 0.0)


@modes
@pytest.mark.parametrize("checkpoint", [None, 2])
def test_newtons_method_until_it_converges(mode, checkpoint):
    """The derivative of the square root, through the steps that computed it."""
    a = pt.dscalar("a")

    def step(x):
        new = 0.5 * (x + a / x)
        return new, graphc.until(abs(new - x) < 1e-12)

    xs = graphc.scan(
        step, outputs_info=[pt.ones_like(a)], n_steps=50, checkpoint_every=checkpoint, return_updates=False
    )
    f = graphc.function([a], [xs[-1], graphc.grad(xs[-1], a), xs.shape[0]], mode=mode)
    for value in (2.0, 9.0, 1e4):
        root, slope, steps = f(value)
        np.testing.assert_allclose([root, slope], [value**0.5, 0.5 / value**0.5], rtol=1e-9)
        assert steps < 50


@modes
def test_large_constants_in_the_body(mode):
    table = rng.normal(size=40)

    def program(h, w):
        return graphc.scan(
            lambda h: pt.sin(h * pt.constant(table)) * w, outputs_info=[h], n_steps=3, return_updates=False
        )[-1]

    def gradient(h, w):
        return graphc.grad(program(h, w).sum(), [h, w])

    values = [rng.normal(size=40), np.asarray(0.7)]
    verify_grad(program, values, mode=mode, n_tests=1)
    verify_grad(gradient, values, mode="reference", n_tests=1)


@modes
def test_a_cost_inside_and_outside_of_the_loop(mode):
    """The gradient of a loop whose body takes a gradient itself: gradient descent."""
    target, rate = pt.dvector("target"), pt.dscalar("rate")

    def step(w):
        loss = ((w - target) ** 2).sum() + (w**4).sum()
        return w - rate * graphc.grad(loss, w)

    ws = graphc.scan(step, outputs_info=[pt.zeros_like(target)], n_steps=4, return_updates=False)
    cost = ((ws[-1] - target) ** 2).sum()
    g = graphc.grad(cost, [rate, target])
    f = graphc.function([target, rate], [cost, *g], mode=mode)
    t, r, eps = rng.normal(size=3), 0.05, 1e-6
    numeric = (f(t, r + eps)[0] - f(t, r - eps)[0]) / (2 * eps)
    np.testing.assert_allclose(f(t, r)[1], numeric, rtol=1e-6)


class Stream(Type):
    """Numbers that follow from a Python integer, as those of a random generator from its state."""

    __props__ = ()

    def filter(self, value, strict=False, allow_downcast=None):
        return int(value)


class Draw(Op):
    """The next state of a stream, and a number in [0, 1)."""

    __props__ = ()

    def make_node(self, stream):
        return Apply(self, [stream], [Stream()(), pt.dscalar()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = (inputs[0] * 1103515245 + 12345) % 2**31
        output_storage[1][0] = np.asarray(inputs[0] / 2**31)

    def connection_pattern(self, node):
        return [[True, False]]

    def pullback(self, inputs, outputs, cotangents):
        return [None]


@pytest.mark.parametrize("checkpoint", [None, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_drawn_numbers_are_the_same_in_the_gradient(checkpoint, reverse):
    """``h = h * w + x * u`` where u is drawn from a state that is no tensor."""
    from graphc.scan.op import Scan
    from graphc.scan.spec import Invariant, ScanSpec, Sequence, State, Untraced

    x, h, w = pt.dscalars("x", "h", "w")
    stream = Stream()("stream")
    following, u = Draw()(stream)
    spec = ScanSpec((Sequence("x"),), (State("h"),), (), (Untraced("stream"),), (Invariant("w"),))
    op = Scan(
        spec, [x, h, stream, w], [pt.sin(h * w) + x * u * w, following],
        reverse=reverse, checkpoint_every=checkpoint,
    )  # fmt: skip
    start = graphc.graph.basic.Constant(Stream(), 12345)

    def program(X, H, W):
        return op(X.shape[0], X, H, start, W)[0]

    values = [rng.normal(size=5), rng.normal(size=1), np.asarray(0.8)]
    verify_grad(program, values, mode="reference")
    verify_grad(
        lambda *xs: graphc.grad((program(*xs) ** 2).sum(), list(xs)), values, mode="reference", n_tests=1
    )


@pytest.mark.parametrize(("dtype", "steps"), [("float64", 1), ("float32", 1), ("float64", 3)])
@pytest.mark.parametrize("ends", [False, True])
def test_states_as_long_as_another_loop_ran(dtype, steps, ends):
    """Rows of one loop, of which nobody knows how many there are, start another one with a loop inside."""
    x, h0 = pt.vector("x", dtype=dtype), pt.scalar("h0", dtype=dtype)

    def inner(h):
        last = graphc.scan(lambda k: pt.sin(k) * h, outputs_info=[h], n_steps=2, return_updates=False)[-1]
        return (last, graphc.until(h.sum() > 1e6)) if ends else last

    for first, second, mode in ((None, None, "interpret"), (None, 1, "fast_run"), (2, None, "fast_run")):
        start = graphc.scan(
            lambda r, h: (pt.tanh(h + r), graphc.until(r > 1.5)),
            *(x, h0),
            checkpoint_every=first,
            return_updates=False,
        )
        rows = graphc.scan(
            inner, outputs_info=[start], n_steps=steps, checkpoint_every=second, return_updates=False
        )
        gradients = [graphc.grad((rows**2).sum(), start), *graphc.grad(rows.sum(), [x, h0])]
        arguments = np.linspace(0.5, 2, 4).astype(dtype), np.asarray(0.25, dtype)
        expected = graphc.function([x, h0], gradients, mode="reference")(*arguments)
        got = graphc.function([x, h0], gradients, mode=mode)(*arguments)
        for g, want in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, want, rtol=1e-5, atol=1e-6 if dtype == "float32" else 0)
