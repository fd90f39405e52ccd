# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Factors of banded and tridiagonal matrices.

Bands are those of ``scipy.linalg.cholesky_banded``: row ``u + i - j`` and column j of the array have element
(i, j), with u = p - 1 where the upper half is given and 0 where the lower one is.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import copy, over_batch, transpose
from graphc.library.linalg.cholesky import NOT_POSITIVE
from graphc.native.builtins import call, conj, real, ref, sqrt, type_of, view


@over_batch("cholesky_banded")
def _cholesky_banded(attributes, ab):
    from scipy.linalg import cholesky_banded

    if ab.size == 0:
        return ab
    out = cholesky_banded(ab, lower=bool(attributes["lower"]), check_finite=False)
    return np.where(_inside(*ab.shape, bool(attributes["lower"])), out, 0)


def _inside(p, n, lower):
    """Places of the bands that are elements of the matrix."""
    d, j = np.ogrid[:p, :n]
    return d + j < n if lower else d + j >= p - 1


@kernel("cholesky_banded", _cholesky_banded, errors=[NOT_POSITIVE], flags="contract")
def cholesky_banded(ab, out, p, n, *, lower):
    for i in range(p * n):
        out[i] = 0.0
    for j in range(n):
        for i in range(j, min(j + p, n)):
            total = ab[(i - j) * n + j] if lower else conj(ab[(p - 1 + j - i) * n + i])
            for k in range(max(0, i - p + 1), j):
                total -= element(out, i, k, p, n, lower) * conj(element(out, j, k, p, n, lower))
            if i == j:
                square = real(total)
                if not square > 0.0:
                    return 1
                store(out, i, j, p, n, lower, sqrt(square))
            else:
                store(out, i, j, p, n, lower, total / element(out, j, j, p, n, lower))
    return 0


def element(c, i, j, p, n, lower):
    """Element (i, j), i >= j, of the lower factor."""
    if lower:
        return c[(i - j) * n + j]
    return conj(c[(p - 1 + j - i) * n + i])


def store(c, i, j, p, n, lower, value):
    if lower:
        c[(i - j) * n + j] = value
    else:
        c[(p - 1 + j - i) * n + i] = conj(value)


def _cholesky_banded_pullback(attributes, c, g):
    """The kernel in Python."""
    out = np.empty_like(c)
    for index in np.ndindex(*c.shape[:-2]):
        flat = np.empty(c[index].size, c.dtype)
        scratch = np.empty(max(c[index].nbytes * 2, 8), np.uint8)
        p, n = c.shape[-2:]
        cholesky_banded_pullback(
            np.ravel(c[index]), np.ravel(g[index]), flat, scratch, p, n, lower=attributes["lower"]
        )
        out[index] = flat.reshape(p, n)
    return out


def _pullback_scratch(s):
    return s["p"] * s["n"] * 16


@kernel("cholesky_banded_pullback", _cholesky_banded_pullback, scratch=_pullback_scratch, flags="contract")
def cholesky_banded_pullback(c, g, out, scratch, p, n, *, lower):
    """The steps of the factorization backwards, for real numbers."""
    bar = view(scratch, type_of(c))
    copy(g, bar, p * n)
    for i in range(p * n):
        out[i] = 0.0
    for j in range(n - 1, -1, -1):
        pivot = element(c, j, j, p, n, lower)
        for i in range(min(j + p, n) - 1, j - 1, -1):
            slope = element(bar, i, j, p, n, lower)
            if i == j:
                slope = 0.5 * slope / pivot
            else:
                slope = slope / pivot
                change = element(bar, j, j, p, n, lower) - slope * element(c, i, j, p, n, lower)
                store(bar, j, j, p, n, lower, change)
            store(out, i, j, p, n, lower, slope)
            for k in range(max(0, i - p + 1), j):
                x, y = element(c, i, k, p, n, lower), element(c, j, k, p, n, lower)
                store(bar, i, k, p, n, lower, element(bar, i, k, p, n, lower) - slope * y)
                store(bar, j, k, p, n, lower, element(bar, j, k, p, n, lower) - slope * x)


# Tridiagonal matrices ---------------------------------------------------------------------------------------


@over_batch("tridiagonal_factor")
def _tridiagonal_factor(attributes, dl, d, du, q):
    low, main, over = dl.copy(), d.copy(), du.copy()
    second, pivots = np.zeros(q, d.dtype), np.arange(1, len(d) + 1, dtype="int32")
    for i in range(len(d) - 1):
        if _size(main[i]) >= _size(low[i]):
            low[i] = low[i] / main[i] if main[i] != 0 else low[i]
            main[i + 1] -= low[i] * over[i] if main[i] != 0 else 0
            continue
        factor = main[i] / low[i]
        main[i], low[i], pivots[i] = low[i], factor, i + 2
        over[i], main[i + 1] = main[i + 1], over[i] - factor * main[i + 1]
        if i < q:
            second[i], over[i + 1] = over[i + 1], -factor * over[i + 1]
    return low, main, over, second, pivots


def _size(z):
    return abs(z.real) + abs(z.imag)


@kernel("tridiagonal_factor", _tridiagonal_factor)
def tridiagonal_factor(dl, d, du, l, u, v, w, pivots, p, n, q):  # noqa: E741
    copy(dl, l, p)
    copy(d, u, n)
    copy(du, v, p)
    info = ref(0)
    call("lapack_?gttrf", ref(n), l, u, v, w, pivots, info)


@over_batch("tridiagonal_solve")
def _tridiagonal_solve(attributes, dl, d, du, du2, pivots, b):
    n = len(d)
    lower = np.eye(n, dtype=d.dtype)
    # The product of exchanges and eliminations, which is what the factors stand for.
    for i in range(n - 2, -1, -1):
        step = np.eye(n, dtype=d.dtype)
        step[i + 1, i] = dl[i]
        if pivots[i] != i + 1:
            step[[i, i + 1]] = step[[i + 1, i]]
        lower = step @ lower
    upper = np.diag(d)
    for band, offset in ((du, 1), (du2, 2)):
        upper = upper + (np.diag(band, offset) if n > offset else 0)
    with np.errstate(all="ignore"):
        matrix = lower @ upper
        return np.linalg.solve(matrix.T if attributes["transposed"] else matrix, b)


@kernel("tridiagonal_solve", _tridiagonal_solve, scratch=lambda s: s["n"] * s["k"] * 16 + 16)
def tridiagonal_solve(dl, d, du, du2, pivots, b, out, scratch, p, n, q, k, *, transposed):
    if n == 0 or k == 0:
        return
    columns = view(scratch, type_of(b))
    info, code = ref(0), ref("T" if transposed else "N")
    transpose(b, columns, n, k)
    call("lapack_?gttrs", code, ref(n), ref(k), dl, d, du, du2, pivots, columns, ref(n), info)
    transpose(columns, out, k, n)
