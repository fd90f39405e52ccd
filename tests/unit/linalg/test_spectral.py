# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues, singular values, and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import graphc.tensor as pt
import graphc.tensor.linalg as L

DTYPES = ("float32", "float64", "complex64", "complex128")


def adjoint(x):
    return pt.conj(pt.swapaxes(x, -1, -2))


def rebuilt(u, s, vh):
    return L.matmul(u * pt.expand_dims(s, -2), vh)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 40])
def test_hermitian(compare, random, dtype, n):
    """Values are NumPy's; vectors, whose signs are free, give the matrix of which a triangle was read."""

    def build(a):
        found = []
        for kind in ("L", "U"):
            w, v = L.eigh(a, kind)
            found += [w, L.eigvalsh(a, kind), rebuilt(v, w, adjoint(v))]
        return found

    def reference(a):
        found = []
        for kind, half in (("L", np.tril), ("U", np.triu)):
            part = half(a, -1 if kind == "L" else 1)
            whole = part + np.conj(np.swapaxes(part, -1, -2)) + np.eye(n) * a.real
            found += [np.linalg.eigvalsh(a, kind)] * 2 + [whole]
        return found

    compare(build, reference, random(2, n, n, dtype=dtype), tolerance=2e-2 if dtype in DTYPES[::2] else None)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_generalised(compare, random, positive, dtype, lower):
    def build(a, b):
        w, v = L.eigh(a, b, lower=lower)
        return [w, L.eigvalsh(a, b, lower=lower), pt.abs(v)]

    def reference(a, b):
        w, v = scipy.linalg.eigh(a, b, lower=lower)
        return [w, w, np.abs(v)]

    compare(build, reference, random(4, 4, dtype=dtype), positive(4, 4, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 6, 30])
def test_general(compare, random, dtype, n):
    def build(a):
        w, v = L.eig(a)
        residuals = L.matmul(a, v) - v * pt.expand_dims(w, -2)
        sums = [pt.sum(L.eigvals(a), axis=-1), pt.mean(w**2, axis=-1)]
        return [residuals, *sums, pt.sum(pt.abs(v) ** 2, axis=-2)]

    def reference(a):
        traces = [np.trace(x, axis1=-2, axis2=-1) for x in (a, a @ a / n)]
        return [np.zeros(a.shape), *traces, np.ones((2, n))]

    compare(build, reference, random(2, n, n, dtype=dtype), tolerance=2e-2 if dtype in DTYPES[::2] else None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7), (30, 20)])
def test_svd(compare, random, dtype, shape):
    m, n = shape

    def build(a):
        u, s, vh = L.svd(a, full_matrices=False)
        full = L.svd(a)
        products = [
            L.matmul(adjoint(u), u),
            L.matmul(full[0], adjoint(full[0])),
            L.matmul(full[2], adjoint(full[2])),
        ]
        return [s, full[1], L.svdvals(a), rebuilt(u, s, vh), *products]

    def reference(a):
        eyes = [np.broadcast_to(np.eye(size), (2, size, size)) for size in (min(m, n), m, n)]
        return [np.linalg.svd(a, compute_uv=False)] * 3 + [a, *eyes]

    static = m == 7 and dtype in ("float32", "complex128")
    compare(build, reference, random(2, *shape, dtype=dtype), static=static)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (3, 6)])
def test_least_squares(compare, random, dtype, shape):
    m, n = shape

    def build(a, b, low):
        x, rest, rank, s = L.lstsq(a, b)
        single, alone = L.lstsq(a[0], b[0, :, 0])[:2]
        ranks = [L.matrix_rank(a), L.matrix_rank(low), L.matrix_rank(low, tol=1e3)]
        return [L.pinv(a), x, rest, rank, s, single, alone, *ranks, L.pinv(low, rcond=1e-3)]

    def reference(a, b, low):
        p = np.linalg.pinv(a)
        x = p @ b
        rest = (np.abs(b - a @ x) ** 2).sum(-2)
        ranks = [np.full(2, min(m, n)), np.full(2, 2), np.zeros(2)]
        values = np.linalg.svd(a, compute_uv=False)
        return [p, x, rest, ranks[0], values, x[0, :, 0], rest[0, 0], *ranks, np.linalg.pinv(low, 1e-3)]

    low = random(2, m, 2, dtype=dtype) @ random(2, 2, n, dtype=dtype)
    compare(build, reference, random(2, *shape, dtype=dtype), random(2, m, 2, dtype=dtype), low)


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (2, 0, 3), (2, 3, 0)])
def test_empty(compare, shape):
    def build(a):
        found = [*L.svd(a), *L.svd(a, full_matrices=False), L.svdvals(a), L.pinv(a)]
        return [*found, *L.eigh(a), L.eigvalsh(a), *L.eig(a)] if shape[-1] == shape[-2] else found

    def reference(a):
        found = [
            *np.linalg.svd(a),
            *np.linalg.svd(a, full_matrices=False),
            np.linalg.svd(a, compute_uv=False),
        ]
        found.append(np.zeros((shape[0], shape[2], shape[1])))
        w = np.zeros(a.shape[:2])
        return [*found, w, a, w, w, a] if shape[-1] == shape[-2] else found

    compare(build, reference, np.zeros(shape))


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 3), (0, 2, 2), (3, 4, 0)])
def test_rank_of_nothing(shape):
    a = pt.tensor("a", shape=(None,) * len(shape))
    found = L.matrix_rank(a).eval({a: np.zeros(shape)})
    np.testing.assert_array_equal(found, np.linalg.matrix_rank(np.zeros(shape)), strict=True)
