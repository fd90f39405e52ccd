# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems and matrix equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import graphc.tensor as pt
import graphc.tensor.linalg as L

DTYPES = ("float32", "float64", "complex64", "complex128")
SIZES = (1, 5, 40)


def T(x):
    return np.swapaxes(x, -1, -2)


def dominant(random, *shape, dtype="float64"):
    """Well-conditioned matrices, without symmetry."""
    return (random(*shape, dtype=dtype) + 3 * np.sqrt(shape[-1]) * np.eye(shape[-1])).astype(dtype)


def filled(a, lower, hermitian):
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    mirrored = np.conj(T(half)) if hermitian else T(half)
    on = np.einsum("...ii->...i", a)
    on = on.real if hermitian else on
    return half + mirrored + on[..., None] * np.eye(a.shape[-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_solve(compare, random, positive, dtype, n):
    kinds = [("gen", False), ("sym", True), ("sym", False), ("her", True), ("pos", False), ("pos", True)]

    def build(a, p, b):
        return [
            L.solve(p if kind == "pos" else a, b, assume_a=kind, lower=lower, transposed=turned)
            for kind, lower in kinds
            for turned in (False, True)
        ]

    def reference(a, p, b):
        found = []
        for kind, lower in kinds:
            whole = p if kind == "pos" else a if kind == "gen" else filled(a, lower, kind == "her")
            found += [np.linalg.solve(m, b) for m in (whole, T(whole))]
        return found

    a, p, b = (
        dominant(random, 2, n, n, dtype=dtype),
        positive(2, n, n, dtype=dtype),
        random(2, n, 3, dtype=dtype),
    )
    compare(build, reference, a, p, b)


def test_right_hand_sides(compare, random):
    """Vectors, several columns, batches of either."""
    a, v, b, many = dominant(random, 4, 4), random(4), random(4, 2), random(5, 3, 4)

    def build(a, v, b, many):
        batch = pt.stack([a, 2 * a])
        return [
            L.solve(a, v), L.solve(a, b), L.solve(a, many, b_ndim=1), L.solve(batch, v), L.solve(batch, b),
            L.solve(batch, pt.stack([v, v]), b_ndim=1), L.solve_triangular(a, many, b_ndim=1, lower=True),
        ]  # fmt: skip

    def reference(a, v, b, many):
        x, low = np.linalg.solve(a, v), np.linalg.solve(np.tril(a), many[..., None])[..., 0]
        one = [x, np.linalg.solve(a, b), np.linalg.solve(a, many[..., None])[..., 0], np.stack([x, x / 2])]
        return [*one, np.linalg.solve(np.stack([a, 2 * a]), b), np.stack([x, x / 2]), low]

    for static in (False, True):
        compare(build, reference, a, v, b, many, static=static)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("n", SIZES)
def test_triangular(compare, random, dtype, n):
    kinds = [(lower, trans, unit) for lower in (True, False) for trans in (0, 1, 2) for unit in (True, False)]

    def build(a, b):
        return [
            L.solve_triangular(a, b, lower=lower, trans=trans, unit_diagonal=unit)
            for lower, trans, unit in kinds
        ]

    def reference(a, b):
        return [
            np.stack([
                scipy.linalg.solve_triangular(x, y, lower=lower, trans=trans, unit_diagonal=unit)
                for x, y in zip(a, b, strict=True)
            ])
            for lower, trans, unit in kinds
        ]  # fmt: skip

    a = dominant(random, 2, n, n, dtype=dtype) / (3 * n)
    compare(build, reference, a, random(2, n, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("n", [2, 40])
def test_from_factors(compare, random, positive, dtype, n):
    def build(a, p, b):
        low = L.cholesky(p)
        by_lu = [L.lu_solve(L.lu_factor(a), b, trans=trans) for trans in (0, 1, 2)]
        by_cholesky = [L.cho_solve((low, True), b), L.cho_solve((L.cholesky(p, lower=False), False), b)]
        vectors = [
            L.lu_solve(L.lu_factor(a), b[..., 0], b_ndim=1),
            L.cho_solve((low, True), b[..., 0], b_ndim=1),
        ]
        return [*by_lu, *by_cholesky, *vectors]

    def reference(a, p, b):
        x, y = np.linalg.solve(a, b), np.linalg.solve(p, b)
        return [x, np.linalg.solve(T(a), b), np.linalg.solve(np.conj(T(a)), b), y, y, x[..., 0], y[..., 0]]

    a, p = dominant(random, 2, n, n, dtype=dtype), positive(2, n, n, dtype=dtype)
    compare(build, reference, a, p, random(2, n, 3, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("n", [1, 7])
def test_diagonals(compare, random, dtype, n):
    def build(a, ab, b):
        by_name = [L.solve(a, b, assume_a=kind) for kind in ("diagonal", "tridiagonal", "banded")]
        turned = L.solve(a, b, assume_a="tridiagonal", transposed=True)
        bands = [L.solve_banded((1, 2), ab, b[0]), L.solve_banded((1, 2), ab, b[0, :, 0])]
        return [*by_name, turned, *bands, L.solve_banded((1, 2), ab, b[0], transposed=True)]

    def reference(a, ab, b):
        three = np.triu(np.tril(a, 1), -1)
        x = scipy.linalg.solve_banded((1, 2), ab, b[0])
        whole = sum(np.diag(ab[2 - k, max(k, 0) : n + min(k, 0)], k) for k in (-1, 0, 1, 2) if abs(k) < n)
        main = np.einsum("...ii->...i", a)[..., None]
        found = [b / main, np.linalg.solve(three, b), np.linalg.solve(a, b), np.linalg.solve(T(three), b)]
        return [*found, x, x[:, 0], np.linalg.solve(T(whole), b[0])]

    ab = random(4, n, dtype=dtype)
    ab[2] += 5
    compare(build, reference, dominant(random, 2, n, n, dtype=dtype), ab, random(2, n, 2, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [3, 26])
def test_equations(compare, random, dtype, n):
    def build(a, b, c):
        discrete = [
            L.solve_discrete_lyapunov(a / (9 * n), a, method=m) for m in ("bilinear", "direct")[: 1 + (n < 9)]
        ]
        return [L.solve_sylvester(a, b, c), L.solve_continuous_lyapunov(a, a), *discrete]

    def reference(a, b, c):
        discrete = [scipy.linalg.solve_discrete_lyapunov(a / (9 * n), a)] * (1 + (n < 9))
        return [
            scipy.linalg.solve_sylvester(a, b, c),
            scipy.linalg.solve_continuous_lyapunov(a, a),
            *discrete,
        ]

    arguments = (dominant(random, n, n, dtype=dtype), dominant(random, n + 1, n + 1, dtype=dtype))
    compare(build, reference, *arguments, random(n, n + 1, dtype=dtype))


def test_batches_of_equations(compare, random):
    def reference(a, q):
        pairs = list(zip(a, q, strict=True))
        functions = (scipy.linalg.solve_continuous_lyapunov, scipy.linalg.solve_discrete_lyapunov)
        first, second = (np.stack([f(x, y) for x, y in pairs]) for f in functions)
        return [first, second, second]

    def build(a, q):
        return [
            L.solve_continuous_lyapunov(a, q),
            *(L.solve_discrete_lyapunov(a, q, method=m) for m in ("bilinear", "direct")),
        ]

    compare(build, reference, random(3, 4, 4) / 5 + 0.3 * np.eye(4), random(3, 4, 4))


@pytest.mark.parametrize("shapes", [((0, 3, 3), (0, 3, 2)), ((2, 0, 0), (2, 0, 2)), ((2, 3, 3), (2, 3, 0))])
def test_empty(compare, shapes):
    def build(a, b):
        by_kind = [L.solve(a, b, assume_a=kind) for kind in ("gen", "pos", "diagonal", "tridiagonal")]
        return [*by_kind, L.solve_triangular(a, b), L.lu_solve(L.lu_factor(a), b)]

    a, b = (np.zeros(shape) for shape in shapes)
    compare(build, lambda a, b: [b] * 6, a + np.eye(a.shape[-1]), b)


def test_integers_and_halves_become_floats(compare):
    a = np.array([[2, 1], [1, 3]])
    b = np.array([1, 2], "float16")

    def reference(a, b):
        return [np.linalg.solve(a, b.astype("float32"))] * 2

    compare(lambda a, b: [L.solve(a, b), L.solve(pt.cast(a, "float16"), b)], reference, a, b)
