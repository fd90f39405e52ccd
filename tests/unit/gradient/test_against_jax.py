# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients, products and Hessians of the same functions in JAX."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.usefixtures("jax_in_double_precision")


def logistic(np_, w, x, y):
    z = np_.dot(x, w)
    return (np_.log1p(np_.exp(-abs(z))) + np_.maximum(z, 0) - y * z).mean() + 0.1 * (w**2).sum()


def network(np_, w, x, y):
    h = np_.tanh(np_.dot(x, w.reshape((3, 2))))
    return ((h.sum(axis=1) - y) ** 2).mean() + np_.sqrt((w**2).sum())


def mixture(np_, w, x, y):
    a = np_.sin(w) * np_.cosh(w[::-1]) + np_.arctan(w * x[0, 0])
    b = np_.where(w > 0.1, w**3, np_.expm1(w))
    return (a * b).sum() / (1 + np_.abs(y).sum()) + np_.concatenate([a, b]).max()


FUNCTIONS = [(logistic, 3), (network, 6), (mixture, 4)]
IDS = [f.__name__ for f, _ in FUNCTIONS]


def graphs(f, n):
    """Variables, the cost and values for them."""
    w, x, y = pt.dvector("w"), pt.dmatrix("x"), pt.dvector("y")
    rng = np.random.default_rng(n)
    return [w, x, y], f(pt, w, x, y), [rng.normal(size=n), rng.normal(size=(5, 3)), rng.normal(size=5)]


def run(inputs, outputs, *values):
    return graphc.function(inputs, outputs, mode="reference", on_unused_input="ignore")(*values)


@pytest.mark.parametrize(("f", "n"), FUNCTIONS, ids=IDS)
def test_value_and_gradients(f, n):
    inputs, cost, values = graphs(f, n)
    ours = run(inputs, [cost, *graphc.grad(cost, inputs, disconnected_inputs="ignore")], *values)
    value, theirs = jax.value_and_grad(lambda *a: f(jnp, *a), argnums=(0, 1, 2))(*values)
    for a, b in zip(ours, [value, *theirs], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("f", "n"), FUNCTIONS, ids=IDS)
def test_hessian(f, n):
    inputs, cost, values = graphs(f, n)
    ours = run(inputs, graphc.hessian(cost, inputs[0]), *values)
    theirs = jax.hessian(lambda w: f(jnp, w, *values[1:]))(values[0])
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("f", "n"), FUNCTIONS, ids=IDS)
@pytest.mark.parametrize("direct", [True, False])
def test_jacobian_vector_product(f, n, direct):
    inputs, cost, values = graphs(f, n)
    t = pt.dvector("t")
    tangent = np.random.default_rng(7).normal(size=n)
    jvp = graphc.pushforward(cost, inputs[0], t, use_op_pushforward=direct)
    ours = run([*inputs, t], jvp, *values, tangent)
    _, theirs = jax.jvp(lambda w: f(jnp, w, *values[1:]), (values[0],), (tangent,))
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)
