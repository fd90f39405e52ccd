# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of graphc inside JAX: values, derivatives, batches, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

jax = pytest.importorskip("jax", reason="JAX is in the environment of `make bridge`")
jnp = jax.numpy
rng = np.random.default_rng(3)
A, X = rng.normal(size=(4, 4)), rng.normal(size=4)


@pytest.fixture(scope="module", autouse=True)
def exact():
    from graphc.interop import jax as interop

    with jax.enable_x64(True):
        yield interop


def smoothing(a, x):
    """A loop, and a sum of all of its results."""
    h = graphc.scan(
        lambda r, h, a: pt.tanh(a @ h) + r, sequences=[x], outputs_info=[pt.ones(4)], non_sequences=[a],
        return_updates=False,
    )  # fmt: skip
    return h, (h**2).sum()


def same_in_jax(a, x):
    def step(h, r):
        h = jnp.tanh(a @ h) + r
        return h, h

    h = jax.lax.scan(step, jnp.ones(4), x)[1]
    return h, (h**2).sum()


@pytest.fixture(scope="module")
def loop(exact):
    a, x = pt.dmatrix("a"), pt.dvector("x")
    return exact.to_jax(graphc.function([a, x], smoothing(a, x), name="loop"))


def test_values_and_derivatives_in_jit(loop):
    for ours, theirs in zip(jax.jit(loop)(A, X), same_in_jax(A, X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    ours = jax.jit(jax.grad(lambda a, x: loop(a, x)[1], argnums=(0, 1)))(A, X)
    theirs = jax.grad(lambda a, x: same_in_jax(a, x)[1], argnums=(0, 1))(A, X)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_second_derivatives_and_jacobians(loop):
    ours = jax.jacrev(jax.grad(lambda x: loop(A, x)[1]))(X)
    theirs = jax.hessian(lambda x: same_in_jax(A, x)[1])(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_batches_of_batches(loop):
    xs = rng.normal(size=(2, 3, 4))
    ours = jax.jit(jax.vmap(jax.vmap(jax.value_and_grad(lambda x: loop(A, x)[1]))))(xs)
    theirs = jax.vmap(jax.vmap(jax.value_and_grad(lambda x: same_in_jax(A, x)[1])))(xs)
    for got, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


def test_integers_have_no_cotangents(exact):
    x, i = pt.dvector("x"), pt.lvector("i")
    f = exact.to_jax(graphc.function([x, i], [x[i], i + 1]))
    value, slope = jax.value_and_grad(lambda x, i: (f(x, i)[0] ** 2).sum())(X, np.array([1, 1, 3]))
    np.testing.assert_allclose(value, 2 * X[1] ** 2 + X[3] ** 2)
    np.testing.assert_allclose(slope, [0, 4 * X[1], 0, 2 * X[3]])


def test_a_result_that_no_input_reaches_is_repeated(exact):
    x = pt.dvector("x")
    f = exact.to_jax(graphc.function([x], [x + 1, pt.arange(3.0)]))
    assert jax.vmap(f)(np.ones((2, 4)))[1].shape == (2, 3)


def test_what_is_refused(exact):
    x = pt.dvector("x")
    f = exact.to_jax(graphc.function([x], x[x > 0], name="positive"))
    with pytest.raises(
        TypeError, match=r"positive: the input x has the type .* given .*float64 and shape \(\)"
    ):
        f(1.0)
    with pytest.raises(TypeError, match="takes 1 inputs, given 2"):
        f(X, X)
    grows = exact.to_jax(graphc.function([x], pt.arange(pt.cast(x[0], "int64") + 2)))
    with pytest.raises(Exception, match="depends on values"):
        jax.block_until_ready(grows(np.ones(3)))
    count = graphc.shared(0, name="count")
    with pytest.raises(TypeError, match=r"cannot update.*count"):
        exact.to_jax(graphc.function([], count, updates={count: count + 1}))
