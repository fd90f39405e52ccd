# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of small matrices, which LAPACK does not do: accuracy, order, signs, difficult ones."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
import graphc.tensor.linalg as L
from graphc.gradient.verify import verify_grad

# The largest size done by our own loops is 16.
SIZES = (1, 2, 3, 5, 8, 15, 16, 17)
DTYPES = ("float32", "float64")


def difficult(rng, m, n, dtype):
    """Matrices by name."""
    k = max(m, n)
    top = 150 if dtype == "float64" else 18
    normal = rng.normal(size=(k, k))
    one, other = (np.linalg.qr(rng.normal(size=(k, k)))[0] for _ in range(2))
    steps = np.linspace(0, 1, k)
    down = np.diag(10.0 ** (-12 * steps))
    found = {
        "normal": normal,
        "zeros": np.zeros((k, k)),
        "identity": np.eye(k),
        "ones": np.ones((k, k)),
        "integers": rng.integers(-2, 3, size=(k, k)),
        "huge": normal * 10.0 ** (2 * top - 20),
        "tiny": normal * 10.0 ** (4 - 2 * top),
        "diagonal": np.diag(rng.normal(size=k)),
        "graded": np.diag(10.0 ** (top * (2 * steps - 1))),
        "falling": down + np.roll(down, 1, 1),
        "rising": down[::-1, ::-1] + np.roll(down[::-1, ::-1], 1, 1),
        "columns": normal * 10.0 ** (-0.9 * top * steps),
        "rows": normal * 10.0 ** (-0.9 * top * steps)[:, None],
        "shift": np.eye(k, k=1),
        "rank 1": np.outer(normal[0], normal[-1]),
        "rank 2": normal[:, :2] @ rng.normal(size=(min(k, 2), k)),
        "repeated": one @ np.diag(np.repeat([1.0, 2.0, 5.0], k)[::2][:k]) @ other,
        "decaying": one @ np.diag(10.0 ** (-20 * steps)) @ other,
        "nearly the identity": np.eye(k) + 1e-12 * normal,
        "hilbert": 1 / (np.arange(k)[:, None] + np.arange(k) + 1.0),
        "sparse": normal * (rng.random((k, k)) < 0.3),
        "a row of zeros": normal * (np.arange(k) != k // 2)[:, None],
    }
    return {name: np.asarray(a, dtype)[:m, :n] for name, a in found.items()}


class Limits:
    """Compares arrays of whole batches; errors count in units of the precision and the size."""

    def __init__(self, names, dtype):
        self._names, self._unit = names, float(np.finfo(dtype).eps)

    def check(self, what, found, expected, size, limit=6.0):
        error = np.abs(np.asarray(found, float) - expected).reshape(len(self._names), -1).max(axis=1)
        for name, e in zip(self._names, error, strict=True):
            assert e <= limit * size * self._unit, (what, name, e / size / self._unit)

    def orthonormal(self, what, q):
        """Of columns."""
        q = np.asarray(q, float)
        self.check(what, np.swapaxes(q, 1, 2) @ q, np.eye(q.shape[-1]), max(q.shape[1:]))


def scale_of(a):
    """A number for each matrix, about its norm."""
    largest = np.abs(a.astype(float)).max(axis=(1, 2), keepdims=True)
    return np.where(largest == 0, 1, largest)


@pytest.mark.parametrize("dtype", DTYPES)
def test_symmetric(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    kinds = [L.eigh(x, UPLO=kind) for kind in "LU"]
    f = graphc.function([x], [*kinds[0], *kinds[1], L.eigvalsh(x)])
    for n in SIZES:
        cases = difficult(rng, n, n, dtype)
        a = np.stack([np.tril(x) + np.tril(x, -1).T for x in cases.values()])
        limits, scale = Limits(cases, dtype), scale_of(a)
        exact = a.astype(float) / scale
        *found, alone = f(a)
        values = np.linalg.eigvalsh(exact)
        limits.check("eigvalsh", alone / scale[:, 0], values, n)
        for w, v in (found[:2], found[2:]):
            assert (np.diff(w) >= 0).all()
            limits.check("values", w / scale[:, 0], values, n)
            limits.orthonormal("vectors", v)
            limits.check("residual", exact @ v - v * (w / scale[:, 0])[:, None], 0.0, n)


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    f = graphc.function([x], [*L.svd(x, full_matrices=False), *L.svd(x), L.svdvals(x)])
    shapes = [(n, n) for n in SIZES] + [(7, 3), (3, 7), (16, 2), (1, 9), (9, 1), (13, 16), (17, 4)]
    for m, n in shapes:
        cases = difficult(rng, m, n, dtype)
        a = np.stack([*cases.values()])
        limits, scale, k = Limits(cases, dtype), scale_of(a), min(m, n)
        exact = a.astype(float) / scale
        *found, alone = f(a)
        values = np.linalg.svd(exact, compute_uv=False)
        limits.check("svdvals", alone / scale[:, 0], values, max(m, n))
        for u, s, vh in (found[:3], found[3:]):
            assert (np.diff(s) <= 0).all() and (s >= 0).all()
            limits.check("values", s / scale[:, 0], values, max(m, n))
            limits.orthonormal("left", u)
            limits.orthonormal("right", np.swapaxes(vh, 1, 2))
            product = u[:, :, :k] * (s / scale[:, 0])[:, None] @ vh[:, :k].astype(float)
            limits.check("product", product, exact, max(m, n))


def test_small_singular_values_keep_their_digits(rng):
    """Those of graded matrices are exact although others are larger by many orders of magnitude."""
    x = pt.dmatrix("x")
    f = graphc.function([x], L.svdvals(x))
    for sizes in (10.0 ** np.linspace(0, -70, 9), 10.0 ** np.linspace(-70, 0, 9)):
        np.testing.assert_allclose(f(np.diag(sizes)), np.sort(sizes)[::-1], rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_orthogonal(rng, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    f = graphc.function([x], [*L.qr(x), *L.qr(x, "complete"), L.qr(x, "r")])
    for m, n in [(n, n) for n in SIZES] + [(7, 3), (3, 7), (16, 2), (1, 9), (9, 1), (13, 16), (17, 4)]:
        cases = difficult(rng, m, n, dtype)
        a = np.stack([*cases.values()])
        limits, scale = Limits(cases, dtype), scale_of(a)
        exact = a.astype(float) / scale
        *found, alone = f(a)
        np.testing.assert_array_equal(alone, found[1])
        for q, r in (found[:2], found[2:]):
            limits.orthonormal("q", q)
            limits.check("product", q.astype(float) @ (r / scale), exact, max(m, n))
            np.testing.assert_array_equal(r, np.triu(r))
        # Of a matrix of full rank, the factors are LAPACK's.
        for mine, theirs in zip(found[:2], np.linalg.qr(exact[0]), strict=True):
            size = 1 if mine is found[0] else scale[0]
            np.testing.assert_allclose(
                mine[0] / size, theirs, rtol=0, atol=2e3 * n * float(np.finfo(dtype).eps)
            )


def test_what_is_not_finite(rng):
    x = pt.dmatrix("x")
    finite_only = {"svd_full": L.svd(x), "singular_values": [L.svdvals(x)], "pinv": [L.pinv(x)]}
    infinite_too = {"eigh": L.eigh(x), "eigvalsh": [L.eigvalsh(x)]}
    compiled = {name: graphc.function([x], [*y]) for name, y in (finite_only | infinite_too).items()}
    qr = graphc.function([x], list(L.qr(x)))
    for n in (3, 8, 20):
        a = rng.normal(size=(n, n))
        for bad in (np.nan, np.inf, -np.inf):
            a[n - 1, 0] = a[0, n - 1] = bad
            for name in finite_only if np.isinf(bad) else compiled:
                with pytest.raises(np.linalg.LinAlgError, match=f"{name}: the algorithm did not converge"):
                    compiled[name](a)
            assert np.isnan(qr(a)[1]).any()


def test_layouts(rng):
    x = pt.tensor("x", dtype="float64", shape=(None, None, None))
    w, _ = L.eigh(x)
    u, s, vh = L.svd(x)
    q, r = L.qr(x)
    f = graphc.function([x], [w, L.matmul(u * pt.expand_dims(s, -2), vh), L.matmul(q, r)])
    base = rng.normal(size=(4, 12, 12))
    base = base + np.swapaxes(base, 1, 2)
    for a in (base[::-1, ::2, ::2], base[:, 6:, 6:], base[:, ::-1, ::-1], np.asfortranarray(base), base[:0]):
        a.flags.writeable = False
        for found, expected in zip(f(a), (np.linalg.eigvalsh(a), a, a), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_results_do_not_depend_on_the_batch(rng):
    """One matrix, and many on several threads, give the same numbers."""
    x = pt.tensor("x", dtype="float64", shape=(None, 8, 8))
    f = graphc.function([x], [*L.eigh(x), *L.svd(x), *L.qr(x)])
    a = rng.normal(size=(500, 8, 8))
    whole = f(a)
    for i in (0, 250, 499):
        for one, many in zip(f(a[i : i + 1]), whole, strict=True):
            np.testing.assert_array_equal(one[0], many[i])


def test_gradients(rng):
    """Of what does not depend on the signs of vectors."""
    a, c = rng.normal(size=(6, 6)) + np.diag(np.arange(1.0, 7.0)), rng.normal(size=(6, 6))

    def build(a):
        w, v = L.eigh(a)
        u, s, vh = L.svd(a, full_matrices=False)
        q, r = L.qr(a)
        return [w, pt.abs(v) * c, s, L.matmul(u, vh) * c, pt.abs(q) * c, pt.abs(r) * c, L.pinv(a) * c]

    verify_grad(build, [a], n_tests=1)
