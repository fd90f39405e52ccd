# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of matrices of very large and very small numbers: those of the matrix at scale 1, scaled.

A power of 2 changes no digit, so that results are compared as closely as at scale 1.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import graphc
import graphc.tensor as pt

L = pt.linalg
RNG = np.random.default_rng(0)
# Scales near the ends of the dtypes, and squares of which leave them.
SCALES = {"float64": (990, 500, -500, -990), "float32": (110, 66, -66, -110), "complex128": (990, -990)}


def ordered(w):
    return pt.sort(pt.abs(w))


def rebuilt(t, z):
    return pt.dot(pt.dot(z, t), pt.conj(z).T)


# Name: what is computed, the power of the scale of each result, whether the matrix is positive definite.
FUNCTIONS = {
    "eigvals": (lambda x: [ordered(L.eigvals(x))], (1,), False),
    "eig": (lambda x: [ordered(L.eig(x)[0]), ordered(pt.abs(L.eig(x)[1]))], (1, 0), False),
    "eigh": (lambda x: [L.eigh(x)[0], pt.abs(L.eigh(x)[1])], (1, 0), True),
    "eigvalsh": (lambda x: [L.eigvalsh(x)], (1,), True),
    "svd": (lambda x: [pt.abs(part) for part in L.svd(x)], (0, 1, 0), False),
    "singular values": (lambda x: [L.svd(x, compute_uv=False)], (1,), False),
    "qr": (lambda x: [pt.abs(part) for part in L.qr(x)], (0, 1), False),
    "lu": (lambda x: list(L.lu(x)), (0, 0, 1), False),
    # The order of the values may depend on rounding.
    "schur": (lambda x: [rebuilt(*L.schur(x))], (1,), False),
    "qz": (lambda x: [pt.abs(part) for part in L.qz(x, x + pt.eye(x.shape[0]) * x[0, 0])[:2]], (1, 1), True),
    "polar": (lambda x: list(L.polar(x)), (0, 1), False),
    "solve": (lambda x: [L.solve(x, x[:, 0] + x[:, 1])], (0,), False),
    "solve positive": (lambda x: [L.solve(x, x[:, 0], assume_a="pos")], (0,), True),
    "solve triangular": (lambda x: [L.solve_triangular(x, x[:, 0], lower=True)], (0,), False),
    "lstsq": (lambda x: [L.lstsq(x, x[:, 0])[0]], (0,), False),
    "polyfit": (lambda x: [pt.polyfit(x[0], x[1], 1)[i] for i in range(2)], (0, 1), False),
    "inv": (lambda x: [L.inv(x)], (-1,), False),
    "pinv": (lambda x: [L.pinv(x)], (-1,), False),
    "cholesky": (lambda x: [L.cholesky(x)], (0.5,), True),
    "sqrtm": (lambda x: [L.sqrtm(x)], (0.5,), True),
    "sign of the determinant": (lambda x: [L.slogdet(x)[0]], (0,), False),
    "spectral norm": (lambda x: [L.norm(x, 2), L.norm(x, "nuc"), L.norm(x, 1)], (1, 1, 1), False),
    "cond": (lambda x: [L.cond(x), L.matrix_rank(x)], (0, 0), False),
}


def matrix(dtype, n, positive):
    a = RNG.normal(size=(n, n))
    if dtype.startswith("complex"):
        a = a + 1j * RNG.normal(size=(n, n))
    return (a @ a.conj().T + n * np.eye(n) if positive else a).astype(dtype)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scaled_matrix(name, dtype, n):
    call, powers, positive = FUNCTIONS[name]
    x = pt.TensorType(dtype, (None, None))("x")
    f, a = graphc.function([x], call(x)), matrix(dtype, n, positive)
    expected = f(a)
    tolerance = 2e-3 if dtype == "float32" else 1e-9
    for exponent in SCALES[dtype]:
        found = f(np.ldexp(a.real, exponent).astype(dtype) if a.dtype.kind == "f" else a * 2.0**exponent)
        for got, right, power in zip(found, expected, powers, strict=True):
            got = got * np.asarray(2.0 ** (-exponent * power), got.real.dtype)
            size = np.abs(right).max()
            np.testing.assert_allclose(got / size, right / size, atol=tolerance, err_msg=f"2**{exponent}")


@pytest.mark.parametrize("dtype", SCALES)
def test_logarithms_of_determinants(dtype):
    x, a = pt.TensorType(dtype, (None, None))("x"), matrix(dtype, 5, False)
    f = graphc.function([x], L.slogdet(x)[1])
    for exponent in SCALES[dtype]:
        expected = np.linalg.slogdet(a.astype("complex128"))[1] + 5 * exponent * np.log(2)
        scaled = a * np.asarray(2.0**exponent, dtype)
        np.testing.assert_allclose(f(scaled), expected, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", [*SCALES, "complex64"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_eigenvalues_of_what_is_not_finite(dtype, bad):
    x, a = pt.TensorType(dtype, (None, None, None))("x"), np.ones((2, 3, 3), dtype)
    a[1, 2, 0] = bad
    for f in (graphc.function([x], L.eigvals(x)), graphc.function([x], L.eig(x), mode="reference")):
        with pytest.raises(np.linalg.LinAlgError):
            f(a)
        f(a[:1])


def test_least_squares_at_the_ends_of_the_range():
    """Of the smallest normal numbers, of which an inverse overflows; and what is fitted to the zeros."""
    x, y, a = pt.matrix("x"), pt.vector("y"), matrix("float64", 4, False)[:, :2]
    fit = pt.polyfit(x[:, 0], y, 1)
    f = graphc.function([x, y], [L.lstsq(x, y)[0], fit, *graphc.grad(fit[0], [x, y])])
    expected = f(a, a[:, 1] + 1)
    for exponent in (-1022, -700, 700, 1020):
        solution, line, *slopes = f(np.ldexp(a, exponent), np.ldexp(a[:, 1] + 1, exponent))
        np.testing.assert_allclose(solution, expected[0], rtol=1e-9)
        np.testing.assert_allclose(line, expected[1] * [1, 2.0**exponent], rtol=1e-9)
        for slope, wanted in zip(slopes, expected[2:], strict=True):
            np.testing.assert_allclose(np.ldexp(slope, exponent), wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(graphc.function([], L.lstsq(np.zeros((3, 2)), np.ones(3))[0])(), 0)
    np.testing.assert_allclose(graphc.function([], pt.polyfit(np.zeros(3), np.arange(3.0), 0))(), 1)


def test_batches_have_scales_of_their_own():
    x, a = pt.tensor3("x"), matrix("float64", 4, False)
    scales = 2.0 ** np.array([0, 900, -900, 3, -1000])
    found = graphc.function([x], L.eigvals(x))(a * scales[:, None, None])
    expected = np.sort_complex(scipy.linalg.eigvals(a))
    for values, scale in zip(found, scales, strict=True):
        np.testing.assert_allclose(np.sort_complex(values / scale), expected, rtol=1e-10)


@pytest.mark.parametrize("exponent", [900, 0, -900])
def test_roots(exponent):
    p = np.array([2.0, -3.0, 5.0, 7.0])
    scale = 2.0**exponent
    found = graphc.function([], pt.roots(p * scale))()
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(np.roots(p)), rtol=1e-12)
    # Roots of p(x / 2**300): companion matrices of numbers that are far apart.
    far = graphc.function([], pt.roots(p / 2.0 ** (300 * np.arange(3, -1, -1))))()
    np.testing.assert_allclose(np.sort_complex(far / 2.0**300), np.sort_complex(np.roots(p)), rtol=1e-10)
