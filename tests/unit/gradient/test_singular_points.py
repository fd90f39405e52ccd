# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of polynomials at points where their usual form divides by zero: products with zeros,
determinants of singular matrices.

They are compared with what the polynomials' definitions say.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

import graphc
import graphc.tensor as pt

MODES = ("fast_run", "fast_compile", "reference")
det = pt.linalg.det


def second_derivatives(x):
    """Of the product of a vector: products of all elements but two."""
    found = np.zeros((len(x), len(x)))
    for i, j in itertools.permutations(range(len(x)), 2):
        found[i, j] = np.prod(np.delete(x, [i, j]))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_hessian_of_a_product(dtype, mode):
    x = pt.vector("x", dtype=dtype)
    f = graphc.function([x], [graphc.grad(pt.prod(x), x), graphc.hessian(pt.prod(x), x)], mode=mode)
    for values in ([0, 2, 3], [0, 0, 3, 5], [0, 0, 0, 2], [1, 2, 3, 4], [0], [7], [-0.0, 2, -3]):
        given = np.array(values, dtype)
        slope, curvature = f(given)
        np.testing.assert_allclose(slope, [np.prod(np.delete(given, i)) for i in range(len(given))])
        np.testing.assert_allclose(curvature, second_derivatives(given), rtol=1e-6)


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 2), (2, 0), (0, 1), None])
def test_products_over_axes(axes):
    x, v, w = pt.tensor3("x"), *np.random.default_rng(0).normal(size=(2, 2, 3, 4))
    given = np.random.default_rng(1).normal(size=(2, 3, 4))
    given[0, 0, 0] = given[1, 1, 2] = given[1, 1, 3] = 0
    cost = pt.prod(x, axis=axes)
    weight = np.random.default_rng(2).normal(size=given.prod(axis=axes).shape)
    slope = graphc.grad((cost * weight).sum(), x)
    backward = graphc.function([x], graphc.grad((slope * v).sum(), x))(given)
    forward = graphc.function([x], graphc.pushforward(slope, x, pt.constant(v)))(given)
    # Along a line a product is a polynomial, which differences of these steps find exactly but for rounding.
    values = {
        (i, j): ((given + 1e-3 * (i * v + j * w)).prod(axis=axes) * weight).sum()
        for i in (-1, 1)
        for j in (-1, 1)
    }
    mixed = (values[1, 1] - values[1, -1] - values[-1, 1] + values[-1, -1]) / 4e-6
    np.testing.assert_allclose((backward * w).sum(), mixed, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(forward), backward, rtol=1e-12, atol=1e-14)


def test_products_in_a_loop_and_a_batch():
    m = pt.matrix("m")
    given = np.array([[0.0, 2, 3], [0, 0, 3], [1, 2, 3]])
    total, _ = graphc.scan(lambda row: pt.prod(row), sequences=[m])
    slope = graphc.grad(total.sum(), m)
    curvature = graphc.function([m], graphc.grad((slope * np.arange(3.0)).sum(), m))(given)
    expected = [second_derivatives(row) @ np.arange(3.0) for row in given]
    np.testing.assert_allclose(curvature, expected)
    x = pt.vector("x")
    rows = graphc.tensor.vectorize(lambda x: graphc.hessian(pt.prod(x), x), signature="(n)->(n,n)")(m)
    np.testing.assert_allclose(
        graphc.function([m], rows)(given), [second_derivatives(row) for row in given], err_msg=str(x)
    )


@pytest.mark.parametrize("mode", MODES)
def test_running_products(mode):
    x, weights = pt.vector("x"), np.array([1.0, 2.0, 3.0])
    f = graphc.function([x], graphc.hessian((pt.cumprod(x) * weights).sum(), x), mode=mode)
    np.testing.assert_allclose(f([0.0, 2.0, 3.0]), [[0, 11, 6], [11, 0, 0], [6, 0, 0]])


def cofactors(a):
    n = len(a)
    found = np.zeros_like(a)
    for i, j in itertools.product(range(n), repeat=2):
        found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
    return found


def derivative_of_cofactors(a, g):
    """Cofactors are linear in each element: differences of any step are exact but for rounding."""
    found = np.zeros_like(a)
    for place in itertools.product(range(len(a)), repeat=2):
        step = np.zeros_like(a)
        step[place] = 1
        found[place] = (g * (cofactors(a + step) - cofactors(a - step)) / 2).sum()
    return found


def matrices():
    rng = np.random.default_rng(0)
    yield np.array([[1.0, 2], [2, 4]])
    yield np.zeros((2, 2))
    yield np.zeros((1, 1))
    yield rng.normal(size=(4, 4))
    for n, rank in itertools.product((3, 4, 6), (1, 2, 3)):
        yield rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
    yield np.diag([1.0, 2, 3, 0])
    yield np.diag([1.0, 2, 0, 0])
    yield np.diag([2.0, 2, 2, 1e-9])
    yield np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]])


@cache
def derivatives_of_determinants(mode):
    """The first one, and the second one in a direction, backwards and forwards: once for all matrices."""
    m, v = pt.matrices("m", "v")
    slope = graphc.grad(det(m), m)
    outputs = [slope, graphc.grad((slope * v).sum(), m), graphc.pushforward(slope, m, v)]
    return graphc.function([m, v], outputs, mode=mode)


@pytest.mark.parametrize("a", matrices())
@pytest.mark.parametrize("mode", MODES)
def test_determinants(a, mode):
    v = np.random.default_rng(1).normal(size=a.shape)
    found = derivatives_of_determinants(mode)(a, v)
    second = derivative_of_cofactors(a, v)
    for got, expected in zip(found, [cofactors(a), second, second], strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-10 * max(np.abs(a).max(), 1) ** len(a))


def test_determinants_of_batches_and_complex_matrices():
    t = pt.tensor3("t")
    given = np.stack([np.eye(3), np.diag([1.0, 2, 0]), np.ones((3, 3)), np.diag([1.0, 2, 3])])
    expected = [cofactors(a) for a in given]
    found = graphc.function([t], graphc.grad(det(t).sum(), t))(given)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    total, _ = graphc.scan(lambda a: det(a), sequences=[t])
    np.testing.assert_allclose(graphc.function([t], graphc.grad(total.sum(), t))(given), expected, atol=1e-14)
    z, a = pt.zmatrix("z"), np.array([[1 + 1j, 2], [2, 2 - 2j]])
    g = graphc.function([z], graphc.grad(pt.real(det(z)), z))
    near = g(a + 1e-3 * np.eye(2)) - 1e-3 * np.array([[1, 0], [0, 1]])
    np.testing.assert_allclose(g(a), near, atol=1e-12)
    x = pt.fmatrix("x")
    single = graphc.function([x], graphc.grad(det(x), x))(np.diag([1.0, 2, 0]).astype("float32"))
    np.testing.assert_allclose(single, np.diag([0, 0, 2]), atol=1e-6)
    assert graphc.function([x], graphc.grad(det(x), x))(np.zeros((0, 0), "float32")).shape == (0, 0)


@pytest.mark.parametrize(("dtype", "scales"), [("float64", (530, 900, -530)), ("float32", (64, 100, -64))])
def test_second_derivatives_of_singular_values_at_any_scale(dtype, scales):
    m = pt.matrix("m", dtype=dtype)
    weights = np.random.default_rng(1).normal(size=(4, 3)).astype(dtype)
    slope = graphc.grad(pt.linalg.svd(m, compute_uv=False)[1], m)
    f = graphc.function([m], graphc.grad((slope * weights).sum(), m))
    a = np.random.default_rng(0).normal(size=(4, 3)).astype(dtype)
    for exponent in scales:
        scale = np.asarray(2.0**exponent, dtype)
        np.testing.assert_allclose(f(a * scale) * scale, f(a), rtol=2e-3 if dtype == "float32" else 1e-9)


# -- what is not chosen --------------------------------------------------------------------------------------

ROWS = np.array([0.0, 4.0, -1.0, 1e-320])
SINGULAR = {
    "root": pt.sqrt,
    "logarithm": pt.log,
    "power": lambda x: x**0.5 * 3,
    "quotient": lambda x: pt.sin(x) / x,
    "chain": lambda x: pt.tanh(pt.log(pt.sqrt(x) * 2)),
    "several uses": lambda x: pt.sqrt(x) * pt.log(x) + 1 / x,
    "axes": lambda x: pt.squeeze(pt.log(pt.sqrt(x)[:, None]), axis=1),
    "sum of a row": lambda x: pt.log(x[..., None] * np.array([1.0, 2.0])).sum(axis=-1),
    "product of a row": lambda x: pt.prod(1 / x[..., None] + np.array([1.0, 2.0]), axis=-1),
    "logsumexp": lambda x: pt.logsumexp(pt.log(x)[..., None] * np.array([1.0, 2.0]), axis=-1),
    "softmax": lambda x: (pt.special.softmax(pt.log(x)[..., None] * [1.0, 2.0], axis=-1) * [1, 3]).sum(
        axis=-1
    ),
    "views": lambda x: pt.exp(pt.log(x).reshape((-1, 1)).T).ravel().reshape(x.shape),
    "casts": lambda x: pt.cast(pt.sqrt(pt.cast(x, "complex128").real), x.dtype),
    "inner choice": lambda x: pt.switch(x > 2, pt.sqrt(x), pt.log(x)),
}
CHOICES = {
    "where": lambda y, x: pt.where(x > 0.5, y, 2 * x),
    "else": lambda y, x: pt.where(x <= 0.5, 2 * x, y),
    "condition of a row": lambda y, x: pt.where(
        (x > 0.5)[:, None], y[:, None] * [1.0, 0.0], x[:, None] * [2.0, 0.0]
    ),
    "two": lambda y, x: pt.where(x > 0.5, y, pt.where(x > -0.5, 2 * x, 2 * x + 0 * pt.abs(x))),
    "nested": lambda y, x: pt.where(x > -2, pt.where(x > 0.5, y * 1.0, 2 * x), pt.log(x)),
    "joined": lambda y, x: pt.where(
        pt.concatenate([x, x]) > 0.5, pt.concatenate([y, 0 * x]), pt.concatenate([2 * x, 0 * x])
    ),
}  # fmt: skip


def with_slopes(cost, x):
    slope = graphc.grad(cost, x)
    return [slope, graphc.grad(slope.sum(), x), graphc.pushforward(slope, x, pt.ones_like(x))]


@pytest.mark.parametrize(
    ("mode", "dtype"), [("fast_run", "float64"), ("fast_compile", "float32"), ("reference", "float64")]
)
def test_what_is_not_chosen_has_no_slope(mode, dtype):
    """Whatever its derivatives are there: those of the chosen elements are those of the function alone, of
    the others those of the other branch.
    """
    x = pt.vector("x", dtype=dtype)
    one = pt.vector("one", dtype=dtype)
    found, wanted = {}, {}
    for name, function in SINGULAR.items():
        for choice, chosen in CHOICES.items():
            # Second derivatives of a few: of all that is not elementwise they may be NaN.
            last = 1 if name in ("product of a row", "logsumexp", "softmax") or choice != "nested" else 3
            found[name, choice] = with_slopes(chosen(function(x), x).sum(), x)[:last]
            wanted[name, choice] = with_slopes(function(one).sum(), one)[:last]
    values = ROWS.astype(dtype)
    results = graphc.function([x], list(found.values()), mode=mode)(values)
    exact = graphc.function([one], list(wanted.values()), mode=mode)(values[1:2])
    for name, have, want in zip(found, results, exact, strict=True):
        for order, (slope, alone) in enumerate(zip(have, want, strict=True)):
            others = 0 if order else 2
            np.testing.assert_allclose(slope, [others, alone[0], others, others], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_limits_and_extremes_choose(mode):
    """Beyond a limit, and of elements that are no maximum, nothing counts either; in loops, too."""
    x = pt.vector("x")
    costs = [
        (pt.clip(pt.log(x), -5, 5).sum(), [0, 0.25, 2]),
        (pt.maximum(-3.0, pt.log(x)).sum(), [0, 0.25, 2]),
        (pt.minimum(1 / x, 1e3).sum(), [0, -1 / 16, -4]),
        (pt.max(pt.log(x)), [0, 0.25, 0]),
        (pt.min(-pt.sqrt(x)), [0, -0.25, 0]),
        (
            graphc.scan(
                lambda v, total: total + pt.where(v > 0, pt.sqrt(v) * pt.log(v), v),
                x,
                pt.constant(0.0),
                return_updates=False,
            )[-1],
            [1, (np.log(4) / 2 + 1) / 2, (np.log(0.5) / 2 + 1) / np.sqrt(0.5)],
        ),
    ]
    found = graphc.function([x], [graphc.grad(cost, x) for cost, _ in costs], mode=mode)([0.0, 4.0, 0.5])
    for have, (_, want) in zip(found, costs, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12)
