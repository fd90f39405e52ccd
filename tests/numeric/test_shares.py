# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exponentials over sums of them, as the chain rule writes them, where all over- or underflow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax

import graphc
import graphc.tensor as pt

X, Y, G = pt.matrix("x"), pt.matrix("y"), pt.vector("g")


def spread(x, g, axis):
    """g / sum(exp(x)), given back the axis and size of x, times exp(x)."""
    e = pt.exp(x)
    quotient = pt.expand_dims(g / pt.sum(e, axis=axis), axis)
    return pt.broadcast_to(quotient, e.shape) * e


def other_factors(x, g):
    e = pt.exp(x)
    return -(2 * g * e) / (3 * e.sum(axis=0))


def in_loop(x, g):
    """The trace of a loop that reads and adds such shares."""
    return graphc.scan(
        lambda row, total, g: total + pt.exp(row) * (g / pt.exp(row).sum()),
        sequences=[x],
        outputs_info=[pt.zeros_like(g)],
        non_sequences=[g],
        return_updates=False,
    )


def of_equal_rows(u, y, g):
    """The slopes of rows that are one, together."""
    e = pt.exp(u)
    rows = pt.second(y, g[:, None] / pt.second(y, e).sum(axis=1, keepdims=True))
    return e * rows.sum(axis=0)


# Each expression, and its value.
FORMS = {
    "columns": (spread(X, G, 0), lambda x, y, g: g * softmax(x, axis=0)),
    "rows": (spread(X, G, 1), lambda x, y, g: g[:, None] * softmax(x, axis=1)),
    "all": (X.sum() * (1 / pt.exp(X).sum()) * pt.exp(X), lambda x, y, g: x.sum() * softmax(x)),
    "other factors": (other_factors(X, G), lambda x, y, g: -2 / 3 * g * softmax(x, axis=0)),
    "reciprocal": (
        pt.exp(X) * pt.reciprocal(pt.exp(X).sum(axis=0)) * G, lambda x, y, g: g * softmax(x, axis=0)),
    "loop": (in_loop(X, G), lambda x, y, g: np.cumsum(g * softmax(x, axis=1), axis=0)),
    "below another divisor": (
        pt.exp(X) * (1 / (pt.exp(X).sum(axis=0) / G)), lambda x, y, g: g * softmax(x, axis=0)),
    "above a divisor of a divisor": (
        pt.exp(X) / (pt.exp(X).sum(axis=0) / G) / G, lambda x, y, g: softmax(x, axis=0)),
    "two terms": (G / (pt.exp(X) + pt.exp(Y)) * pt.exp(Y), lambda x, y, g: g * expit(y - x)),
    "three terms": (
        pt.exp(X) * G / (1 + pt.exp(Y) + pt.exp(X)),
        lambda x, y, g: g * np.exp(x - logsumexp([x, y, 0 * x], axis=0))),
    "equal rows": (of_equal_rows(X[0], Y, G), lambda x, y, g: g.sum() * softmax(x[0])),
    "equal rows in a loop": (
        graphc.scan(of_equal_rows, X, non_sequences=[Y, abs(G)], return_updates=False),
        lambda x, y, g: abs(g).sum() * softmax(x, axis=1)),
    "slopes of equal rows": (
        graphc.grad((of_equal_rows(X[0], Y, G) * G).sum(), X)[0],
        lambda x, y, g: g.sum() * softmax(x[0]) * (g - softmax(x[0]) @ g)),
    "equal terms": (
        pt.exp(G[0] + X.sum()) * (1 / (pt.exp(G[0] + X.sum()) + pt.exp(Y))).sum(axis=0),
        lambda x, y, g: expit(g[0] + x.sum() - y).sum(axis=0)),
    "one and another": (pt.exp(X) * (G / (1 + pt.exp(X))), lambda x, y, g: g * expit(x)),
}  # fmt: skip


@pytest.fixture(scope="module")
def forms():
    """All forms in one function."""
    return graphc.function([X, Y, G], {name: form for name, (form, _) in FORMS.items()})


@pytest.mark.parametrize("scale", [1, 10, 100, 1000])
@pytest.mark.parametrize("shift", [0, -2000, 2000])
def test_values(forms, scale, shift):
    rng = np.random.default_rng(scale)
    x, y = scale * rng.normal(size=(2, 3, 3)) + shift
    g = rng.normal(size=3)
    found = forms(x, y, g)
    for name, (_, wanted) in FORMS.items():
        np.testing.assert_allclose(found[name], wanted(x, y, g), rtol=1e-11, atol=1e-13, err_msg=name)


def test_a_sum_along_another_axis_stays():
    """Rows over sums of columns are no shares."""
    e = pt.exp(X)
    f = graphc.function([X], [e / e.sum(axis=1), e.T / e.sum(axis=0), e * (1 / pt.exp(X + 1).sum(axis=0))])
    x = np.random.default_rng(0).normal(size=(3, 3))
    p, q = softmax(x, axis=0), np.exp(x)
    wanted = [q / q.sum(axis=1), q.T / q.sum(axis=0), p / np.e]
    for got, want in zip(f(x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_masked_elements_have_no_share(forms):
    x = np.array([[-np.inf, -2000.0, -2001.0], [0.0, -np.inf, 1.0], [-np.inf, -900.0, -np.inf]])
    g = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(forms(x, x, g)["rows"], g[:, None] * softmax(x, axis=1), rtol=1e-13)
