# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Canonical forms, functions of matrices, Riccati equations and bands: gradients, batches and errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import graphc
import graphc.tensor as pt
from graphc.errors import UndefinedGradientError
from graphc.tensor import linalg

RNG = np.random.default_rng(5)
A = RNG.uniform(-0.5, 0.5, (3, 3)) + 2 * np.eye(3)
B, TALL = RNG.uniform(-1, 1, (3, 2)), RNG.uniform(-1, 1, (4, 3)) * [1.0, 4.0, 20.0]
Q, R = np.eye(3) + 0.1, np.eye(2) + 0.2
BANDS = np.array([[0, 0, 0.3, 0.2, 0.1], [0, 1, -1, 0.5, 0.2], [5, 6, 7, 6, 5.0]])


GRADIENTS = {
    "sqrtm": (linalg.sqrtm, [A]),
    "logm": (linalg.logm, [A]),
    "qr, Q": (lambda x: linalg.qr(x, pivoting=True)[0], [TALL]),
    "qr, R": (lambda x: linalg.qr(x, mode="r", pivoting=True)[0], [TALL]),
    "qr, wide": (lambda x: linalg.qr(x.T, pivoting=True)[1], [TALL]),
    "qr, batch": (lambda x: linalg.qr(x, pivoting=True)[:2], [np.stack([TALL.T, TALL[::-1].T, -TALL.T])]),
    "cholesky_banded": (linalg.cholesky_banded, [BANDS]),
    "cholesky_banded, lower": (lambda x: linalg.cholesky_banded(x, lower=True), [BANDS[::-1, ::-1].copy()]),
    "solveh_banded": (linalg.solveh_banded, [BANDS, np.arange(5.0)]),
    "solve_discrete_are": (linalg.solve_discrete_are, [A / 3, B, Q, R]),
    "solve_continuous_are": (linalg.solve_continuous_are, [A / 3, B, Q, R]),
    "tridiagonal_lu_solve": (
        lambda b: linalg.tridiagonal_lu_solve(linalg.tridiagonal_lu_factor(pt.constant(A)), b, b_ndim=2),
        [B],
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name):
    function, point = GRADIENTS[name]
    graphc.verify_grad(function, point, rng=RNG, mode="reference")


def test_forward_derivatives():
    x, t = pt.dmatrix(), pt.dmatrix()
    direction = RNG.uniform(-1, 1, (3, 3))
    for function in (linalg.sqrtm, linalg.logm):
        found = graphc.function([x, t], graphc.pushforward(function(x), x, t))(A, direction)
        step = 1e-6
        up, down = (function(x).eval({x: A + sign * step * direction}) for sign in (1, -1))
        np.testing.assert_allclose(found, (up - down) / (2 * step), rtol=1e-6, atol=1e-8)


def test_what_has_no_gradient_says_so():
    x = pt.dmatrix()
    for output, why in (
        (linalg.schur(x)[0], "phases"),
        (linalg.qz(x, x)[0], "phases"),
        (linalg.tridiagonal_lu_factor(x)[1], "tridiagonal"),
    ):
        with pytest.raises(UndefinedGradientError, match=why):
            graphc.grad(output.sum(), x)


def test_batches():
    x = pt.dtensor3()
    value = np.stack([A, A + 1, A.T])
    for function in (linalg.sqrtm, linalg.logm, lambda a: linalg.schur(a)[0]):
        whole = function(x).eval({x: value})
        for part, matrix in zip(whole, value, strict=True):
            np.testing.assert_allclose(part, function(x).eval({x: matrix[None]})[0], rtol=1e-9, atol=1e-9)
    mapped = pt.vmap(lambda a: linalg.solve_discrete_are(a, pt.constant(B), pt.constant(Q), pt.constant(R)))(
        x
    )
    np.testing.assert_allclose(mapped.eval({x: value})[1], scipy.linalg.solve_discrete_are(A + 1, B, Q, R))
    order = pt.vmap(lambda a: linalg.qr(a, mode="r", pivoting=True)[1])(x)
    assert order.eval({x: value}).shape == (3, 3)


def test_roots_that_are_not_real_are_nan():
    x = pt.dmatrix()
    assert np.isnan(linalg.sqrtm(x).eval({x: -np.eye(2)})).all()
    root = linalg.sqrtm(x, "complex").eval({x: -np.eye(2)})
    np.testing.assert_allclose(root @ root, -np.eye(2), atol=1e-12)
    nothing = linalg.sqrtm(x).eval({x: np.zeros((3, 3))})
    np.testing.assert_array_equal(nothing, np.zeros((3, 3)))


def test_logarithm_of_what_is_far_from_one():
    x = pt.dmatrix()
    for scale in (1e-200, 1e-6, 1e6, 1e200):
        np.testing.assert_allclose(
            linalg.logm(x).eval({x: A * scale}), scipy.linalg.logm(A) + np.log(scale) * np.eye(3), rtol=1e-10
        )


def test_sorted_schur_forms():
    x = pt.dmatrix()
    value = np.array([[0.0, -2, 1], [1, 0, 3], [0, 0, 5]]) @ np.diag([1, 1, -0.1])
    for sort in ("lhp", "rhp", "iuc", "ouc"):
        t, z = graphc.function([x], linalg.schur(x, "complex", sort))(value)
        np.testing.assert_allclose(z @ t @ z.conj().T, value, atol=1e-12)
        chosen = {"lhp": t.diagonal().real < 0, "rhp": t.diagonal().real >= 0}
        circle = {"iuc": abs(t.diagonal()) <= 1, "ouc": abs(t.diagonal()) > 1}
        first = {**chosen, **circle}[sort]
        assert (np.sort(first)[::-1] == first).all(), "they come first"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: linalg.schur(x, "quaternion"), "output"),
        (lambda x: linalg.schur(x, sort="up"), "sort"),
        (lambda x: linalg.qr(x, mode="raw", pivoting=True), "with pivoting"),
        (lambda x: linalg.polar(x, "up"), "side"),
        (lambda x: linalg.orth(pt.dtensor3()), "one matrix"),
        (lambda x: linalg.cho_solve_banded((x, False), x), "number of bands"),
        (lambda x: linalg.tensorsolve(x, x), "more dimensions"),
        (lambda x: linalg.companion(x), "coefficients"),
        (lambda x: linalg.toeplitz(1.0), "takes vectors"),
        (lambda x: linalg.solve_discrete_are(x, x, pt.zeros((2, 3)), x), "square"),
        (lambda x: linalg.sqrtm(pt.dvector()), "at least two"),
    ],
)
def test_errors(call, error):
    with pytest.raises((ValueError, TypeError), match=error):
        call(pt.dmatrix())


def test_not_positive_definite():
    x = pt.tensor(dtype="float64", shape=(3, None))
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        graphc.function([x], linalg.cholesky_banded(x))(-BANDS)
