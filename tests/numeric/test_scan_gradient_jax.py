# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of loops against JAX."""

from __future__ import annotations

import numpy as np
import pytest
from scan_modes import MODES

import graphc
import graphc.tensor as pt
from graphc.gradient import hessian_vector_product

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("jax_in_double_precision")

N, SIZE = 6, 3
rng = np.random.default_rng(3)


def rnn(x, h, w, u):
    """A recurrent network: the last state and the mean of all."""
    hs = graphc.scan(
        lambda x, h: pt.tanh(h @ w + x @ u), sequences=[x], outputs_info=[h], return_updates=False
    )
    return (hs[-1] ** 2).sum() + hs.mean()


def rnn_in_jax(x, h, w, u):
    def step(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    last, hs = jax.lax.scan(step, h, x)
    return (last**2).sum() + hs.mean()


def garch(r, omega, alpha, beta):
    """Negative log-likelihood of a GARCH(1, 1) model."""
    start = pt.as_tensor_variable(1.0) * pt.sum(omega * 0 + 1.0)
    v = graphc.scan(
        lambda r, v: omega + alpha * r**2 + beta * v,
        sequences=[r],
        outputs_info=[start],
        return_updates=False,
    )
    return (pt.log(v) + r**2 / v).sum()


def garch_in_jax(r, omega, alpha, beta):
    def step(v, r):
        v = omega + alpha * r**2 + beta * v
        return v, v

    _, v = jax.lax.scan(step, 1.0, r)
    return (jnp.log(v) + r**2 / v).sum()


def lags(x, h, a):
    """A recurrence over rows 3 and 1 back, which also reads the next element of the sequence."""
    hs = graphc.scan(
        lambda x0, x1, h3, h1: pt.sin(h3) * x0 + a * h1 * x1,
        sequences=[{"input": x, "taps": [0, 1]}],
        outputs_info=[{"initial": h, "taps": [-3, -1]}],
        return_updates=False,
    )
    return (hs**2).sum()


def lags_in_jax(x, h, a):
    def step(carry, xs):
        h3, h2, h1 = carry
        new = jnp.sin(h3) * xs[0] + a * h1 * xs[1]
        return (h2, h1, new), new

    _, hs = jax.lax.scan(step, tuple(h), (x[:-1], x[1:]))
    return (hs**2).sum()


def backwards(x, h, a):
    """A loop that runs from the last element to the first, inside a loop."""

    def outer(row, g):
        inner = graphc.scan(
            lambda x, h: pt.tanh(h * a + x),
            sequences=[row],
            outputs_info=[g],
            go_backwards=True,
            return_updates=False,
        )
        return inner[-1] * g

    return graphc.scan(outer, sequences=[x], outputs_info=[h], return_updates=False)[-1]


def backwards_in_jax(x, h, a):
    def outer(g, row):
        last, _ = jax.lax.scan(lambda h, x: (jnp.tanh(h * a + x), None), g, row, reverse=True)
        return last * g, None

    return jax.lax.scan(outer, h, x)[0]


CASES = {
    "rnn": (rnn, rnn_in_jax, [(N, 2), (SIZE,), (SIZE, SIZE), (2, SIZE)]),
    "garch": (garch, garch_in_jax, [(N,), (), (), ()]),
    "lags": (lags, lags_in_jax, [(N,), (3,), ()]),
    "backwards": (backwards, backwards_in_jax, [(4, 3), (), ()]),
}
both = pytest.mark.parametrize("name", CASES)
modes = pytest.mark.parametrize("mode", MODES)


def _inputs(shapes):
    # Positive values: variances stay positive.
    values = [rng.uniform(0.1, 0.6, size=shape) for shape in shapes]
    return [pt.tensor(dtype="float64", shape=(None,) * len(shape)) for shape in shapes], values


@modes
@both
def test_gradients(name, mode):
    ours, theirs, shapes = CASES[name]
    inputs, values = _inputs(shapes)
    cost = ours(*inputs)
    found = graphc.function(inputs, [cost, *graphc.grad(cost, inputs)], mode=mode)(*values)
    value, gradients = jax.value_and_grad(theirs, argnums=tuple(range(len(values))))(*values)
    for a, b in zip(found, [value, *gradients], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


@modes
@both
def test_hessian_vector_products(name, mode):
    ours, theirs, shapes = CASES[name]
    inputs, values = _inputs(shapes)
    directions = [rng.normal(size=v.shape) for v in values]
    cost = ours(*inputs)
    gradient = graphc.grad(cost, inputs)
    twice = hessian_vector_product(cost, inputs, [pt.constant(d) for d in directions])
    mixed = graphc.pushforward(gradient, inputs, [pt.constant(d) for d in directions])
    found = graphc.function(inputs, [*twice, *mixed], mode=mode)(*values)
    every = tuple(range(len(values)))
    expected = jax.jvp(jax.grad(theirs, argnums=every), tuple(values), tuple(directions))[1]
    for a, b in zip(found, [*expected, *expected], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@both
def test_third_derivatives(name):
    """The gradient of the squared gradient's squared gradient."""
    ours, theirs, shapes = CASES[name]
    inputs, values = _inputs(shapes)
    every = tuple(range(len(values)))

    def squared(f):
        return lambda *xs: sum((g**2).sum() for g in jax.grad(f, argnums=every)(*xs))

    cost = ours(*inputs)
    for _ in range(2):
        cost = sum((g**2).sum() for g in graphc.grad(cost, inputs))
    found = graphc.function(inputs, graphc.grad(cost, inputs), mode="reference")(*values)
    expected = jax.grad(squared(squared(theirs)), argnums=every)(*values)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)
