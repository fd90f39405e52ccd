# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky, LU and QR factors are those of NumPy and SciPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.linalg

import graphc.tensor as pt
import graphc.tensor.linalg as L

DTYPES = ("float32", "float64", "complex64", "complex128")
# Small ones are done by our own loops, large ones by LAPACK.
SIZES = (1, 5, 40)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def each(function):
    """A SciPy function of a matrix on a batch."""
    return lambda a: [np.stack(column) for column in zip(*map(function, a), strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(compare, positive, dtype):
    def reference(a, b, c):
        return [f(np.linalg.cholesky(x)) for x in (a, b, c) for f in (np.asarray, adjoint)]

    batches = [positive(3, n, n, dtype=dtype) for n in SIZES]
    compare(lambda *xs: [L.cholesky(x, lower=low) for x in xs for low in (True, False)], reference, *batches)


def test_cholesky_reads_one_triangle(compare, positive):
    a = positive(6, 6)
    over = np.triu(np.ones((6, 6), bool), 1)
    low, high = np.where(over, np.nan, a), np.where(over.T, np.nan, a)
    expected = np.linalg.cholesky(a)
    compare(lambda x: L.cholesky(x), lambda x: expected, low)
    compare(lambda x: L.cholesky(x, lower=False), lambda x: expected.T, high)


@pytest.mark.parametrize("n", [3, 40])
def test_cholesky_of_what_has_none_is_nan_if_asked_for(compare, positive, n):
    a = positive(2, n, n)
    a[1, -1, -1] = -1.0

    def reference(x):
        result = np.full_like(x, np.nan)
        result[0] = np.linalg.cholesky(x[0])
        return result

    for mode in ("fast_run", "reference"):
        compare(lambda x: L.cholesky(x, on_error="nan"), reference, a, mode=mode)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7), (40, 30), (30, 40)])
def test_lu(compare, random, dtype, shape):
    def build(a):
        return [*L.lu(a), *L.lu(a, p_indices=True), *L.lu(a, permute_l=True)]

    def reference(a):
        kinds = ({}, {"p_indices": True}, {"permute_l": True})
        return [y for kind in kinds for y in each(partial(scipy.linalg.lu, **kind))(a)]

    compare(build, reference, random(2, *shape, dtype=dtype), static=shape[0] == 5)


@pytest.mark.parametrize("n", [5, 40])
def test_lu_factor_and_permutations(compare, random, n):
    def build(a):
        factors, pivots = L.lu_factor(a)
        orders = [L.pivot_to_permutation(pivots, inverse=kind) for kind in (False, True)]
        return [factors, pivots, *orders, pt.take_along_axis(a, pt.expand_dims(orders[1], -1), 1)]

    def reference(a):
        factors, pivots = each(scipy.linalg.lu_factor)(a)
        p = each(lambda x: scipy.linalg.lu(x, p_indices=True))(a)[0]
        product = (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
        return [factors, pivots, p, np.argsort(p, axis=-1), product]

    compare(build, reference, random(3, n, n))


def test_lu_of_singular_matrices(compare):
    a = np.array([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
    compare(lambda x: L.lu(x), each(scipy.linalg.lu), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7)])
def test_qr(compare, random, dtype, shape):
    modes = ("reduced", "complete", "r", "raw")

    def every(qr, a):
        return [y for mode in modes for y in (lambda f: [f] if mode == "r" else f)(qr(a, mode))]

    compare(lambda a: every(L.qr, a), lambda a: every(np.linalg.qr, a), random(2, *shape, dtype=dtype))


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0)])
def test_empty(compare, shape):
    def build(a):
        return [L.cholesky(a), *L.lu_factor(a), *L.qr(a), L.qr(a, "r")]

    k = shape[-1]
    compare(build, lambda a: [a, a, np.zeros((shape[0], k)), a, a, a], np.zeros(shape))


def test_empty_sides_of_qr(compare):
    def build(a):
        return [*L.qr(a), *L.qr(a, "complete")]

    for shape in ((0, 3), (3, 0)):
        compare(build, lambda a: [*np.linalg.qr(a), *np.linalg.qr(a, "complete")], np.zeros(shape))


def test_layouts(compare, positive):
    def factors(cholesky, a):
        inside = [a[:, :2, :2], a[::-1, 1:, 1:], a[:, ::2, ::2], a[1:], a[0]]
        return [cholesky(a), *map(cholesky, inside)]

    wide = positive(4, 12, 12)
    for view in (wide[::-1, ::2, ::2], wide[:, 6:, 6:], wide[:, ::-1, ::-1], np.asfortranarray(wide)):
        view.flags.writeable = False
        compare(lambda a: factors(L.cholesky, a), lambda a: factors(np.linalg.cholesky, a), view)
