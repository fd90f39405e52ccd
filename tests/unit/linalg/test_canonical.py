# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Canonical forms, functions of matrices, Riccati equations and bands: gradients, batches and errors."""

from __future__ import annotations

from functools import cache

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special

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


@cache
def _eigenvectors(rows):
    """Eigenvalues, eigenvectors and their inverse in 100 digits, of a matrix that differs in the 40th."""
    n, rng = len(rows), np.random.default_rng(1)
    with mpmath.workdps(100):
        noise = mpmath.matrix(rng.normal(size=(n, n)).tolist()) * mpmath.mpf(10) ** -40
        values, vectors = mpmath.eig(mpmath.matrix(rows) + noise)
        return values, vectors, vectors**-1


def _exact(function, a):
    values, vectors, inverse = _eigenvectors(tuple(map(tuple, a.tolist())))
    with mpmath.workdps(100):
        found = vectors * mpmath.diag([function(x) for x in values]) * inverse
        return np.array(found.tolist(), complex)


FUNCTIONS = {
    "sin": (np.sin, mpmath.sin),
    "tanh": (np.tanh, mpmath.tanh),
    "sqrt": (np.sqrt, mpmath.sqrt),
    "log": (np.log, mpmath.log),
    "reciprocal": (np.reciprocal, lambda x: 1 / x),
    "erf": (scipy.special.erf, mpmath.erf),
    "fast": (lambda x: np.exp(20j * x), lambda x: mpmath.exp(20j * x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("spread", [0, 1e-12, 1e-8, 1e-5, 1e-3, 0.05, 0.5])
def test_functions_of_matrices_whose_eigenvalues_are_close(name, spread):
    function, reference = FUNCTIONS[name]
    rng = np.random.default_rng(3)
    for size, scale in ((2, 1.0), (4, 1e-3), (4, 3.0)):
        q = np.linalg.qr(rng.normal(size=(size, size)))[0]
        eigenvalues = np.where(np.arange(size) < 3, 1 + spread * rng.uniform(size=size), 4)
        a = scale * q @ (np.diag(eigenvalues) + np.triu(rng.uniform(-1, 1, (size, size)), 1)) @ q.T
        want = _exact(reference, a)
        # What rounding of the matrix moves is no error.
        moved = np.abs(_exact(reference, a * (1 + 2e-16 * rng.uniform(-1, 1, a.shape))) - want).max()
        x = pt.dmatrix()
        found = graphc.function([x], linalg.funm(x, function, output="complex"))(a)
        assert np.abs(found - want).max() <= 2e-14 * np.abs(want).max() + 300 * moved
        narrow = graphc.function([x], linalg.funm(pt.cast(x, "float32"), function, output="complex"))(a)
        assert narrow.dtype == "complex64"
        near = _exact(reference, a.astype("float32").astype("float64"))
        assert np.abs(narrow - near).max() <= 1e-6 * np.abs(near).max()


def test_derivatives_of_functions_of_matrices():
    """By what the function is for a matrix of twice as many rows, all of whose eigenvalues are double."""
    twins = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0], [0.0, 0.0, 1.0 + 1e-9]])
    x = pt.dmatrix()
    for a in (A, twins, np.eye(3)):
        for function, same in ((np.exp, linalg.expm), (np.log, linalg.logm)):
            f = graphc.function([x], graphc.grad((linalg.funm(x, function) ** 2).sum(), x))
            g = graphc.function([x], graphc.grad((same(x) ** 2).sum(), x))
            np.testing.assert_allclose(f(a), g(a), rtol=1e-11, atol=1e-11)
    graphc.verify_grad(lambda v: linalg.funm(v, np.sin), [twins], rng=RNG, mode="reference")


@pytest.mark.parametrize("function", [np.abs, np.sign, np.conj, np.real, lambda x: np.maximum(x.real, 1.5)])
def test_functions_that_are_not_analytic_have_values_at_the_eigenvalues(function):
    q = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    for eigenvalues in ([1.0] * 5, [1, 1, -2, -2, 3], [1, 1 + 1e-9, 1 - 1e-5, -4, -4], [2, 3, 4, 5, 6]):
        a = q @ np.diag(eigenvalues) @ q.T
        found = linalg.funm(a, function).eval()
        np.testing.assert_allclose(found, q @ np.diag(function(np.array(eigenvalues))) @ q.T, atol=1e-12)
