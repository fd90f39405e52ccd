# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LU factors with row exchanges, and what follows from them: determinants, inverses, permutations."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import SMALL, absolute, copy, identity, magnitude, over_batch, swap_rows, transpose
from graphc.library.linalg.triangular import SINGULAR, backward, forward
from graphc.native.builtins import call, log, ref, type_of, view

_INFINITY = float("inf")


def factor(a, pivots, m, n):
    """Factors in place. Returns 0, or the number (from 1) of the first pivot that is zero."""
    first = 0
    for j in range(min(m, n)):
        best = magnitude(a[j * n + j])
        p = j
        for i in range(j + 1, m):
            size = magnitude(a[i * n + j])
            if size > best:
                best = size
                p = i
        pivots[j] = p
        if p != j:
            swap_rows(a, j, p, n)
        pivot = a[j * n + j]
        if pivot == 0.0:
            if first == 0:
                first = j + 1
        else:
            for i in range(j + 1, m):
                f = a[i * n + j] / pivot
                a[i * n + j] = f
                for c in range(j + 1, n):
                    a[i * n + c] -= f * a[j * n + c]
    return first


def factor_columns(a, pivots, m, n):
    """The same of a matrix stored by columns; pivots count from 1."""
    info = ref(0)
    if m > 0 and n > 0:
        call("lapack_?getrf", ref(m), ref(n), a, ref(m), pivots, info)
    return info[0]


def swap_like(x, pivots, n, k):
    """The row exchanges of a factorization, done to x of shape (n, k)."""
    for i in range(n):
        if pivots[i] != i:
            swap_rows(x, i, pivots[i], k)


@over_batch("lu_factor")
def _lu_factor(attributes, a, k):
    from scipy.linalg.lapack import get_lapack_funcs

    if a.size == 0:
        return a, np.zeros(k, np.int32)
    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    found, pivots, _ = getrf(a)
    return found, pivots


@kernel("lu_factor", _lu_factor, scratch=lambda s: s["m"] * s["n"] * 16 + 64, flags="contract")
def lu_factor(a, out, pivots, scratch, m, n, k):
    if m <= SMALL or n <= SMALL:
        copy(a, out, m * n)
        factor(out, pivots, m, n)
    else:
        work = view(scratch, type_of(a))
        transpose(a, work, m, n)
        factor_columns(work, pivots, m, n)
        for i in range(k):
            pivots[i] -= 1
        transpose(work, out, n, m)


def _det(attributes, a):
    return np.linalg.det(a)


@kernel("det", _det, scratch=lambda s: s["n"] * s["n"] * 16 + s["n"] * 4 + 64, flags="contract")
def det(a, out, scratch, n):
    work = view(scratch, type_of(a))
    pivots = view(scratch[n * n * 16 :], "i32")
    offset = factored(a, work, pivots, n)
    out[0] = 1.0
    for i in range(n):
        x = work[i * n + i]
        out[0] = -out[0] * x if pivots[i] != i + offset else out[0] * x


def factored(a, work, pivots, n):
    """Factors a or, where it is large, its transpose. Returns what pivots count from."""
    copy(a, work, n * n)
    if n <= SMALL:
        factor(work, pivots, n, n)
        return 0
    factor_columns(work, pivots, n, n)
    return 1


def _slogdet(attributes, a):
    return tuple(np.linalg.slogdet(a))


@kernel("slogdet", _slogdet, scratch=lambda s: s["n"] * s["n"] * 16 + s["n"] * 4 + 64, flags="contract")
def slogdet(a, sign, logdet, scratch, n):
    work = view(scratch, type_of(a))
    pivots = view(scratch[n * n * 16 :], "i32")
    offset = factored(a, work, pivots, n)
    sign[0] = 1.0
    logdet[0] = 0.0
    for i in range(n):
        x = work[i * n + i]
        size = absolute(x)
        if size == 0.0:
            sign[0] = 0.0
            logdet[0] = -_INFINITY
        else:
            unit = x / size
            sign[0] = -sign[0] * unit if pivots[i] != i + offset else sign[0] * unit
            logdet[0] += log(size)


def _inv(attributes, a):
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"inv: {SINGULAR[1]}") from None


@kernel("inv", _inv, errors=[SINGULAR], scratch=lambda s: (s["n"] + 64) * s["n"] * 16 + s["n"] * 4 + 64)
def inv(a, out, scratch, n):
    work = view(scratch, type_of(a))
    pivots = view(scratch[(n + 64) * n * 16 :], "i32")
    if n <= SMALL:
        copy(a, work, n * n)
        if factor(work, pivots, n, n) != 0:
            return 1
        identity(out, n, n)
        swap_like(out, pivots, n, n)
        forward(work, out, n, n, 0, 1)
        backward(work, out, n, n, 0, 0)
        return 0
    # The inverse of the transpose is the transpose of the inverse.
    copy(a, out, n * n)
    if factor_columns(out, pivots, n, n) != 0:
        return 1
    info = ref(0)
    call("lapack_?getri", ref(n), out, ref(n), pivots, work, ref(n * 64), info)
    return 1 if info[0] != 0 else 0


@over_batch("pivot_to_permutation")
def _pivot_to_permutation(attributes, pivots, m):
    out = np.arange(m)
    for i, p in enumerate(pivots):
        out[[i, p]] = out[[p, i]]
    return out


OUT_OF_RANGE = ("IndexError", "an index is out of range")


@kernel("pivot_to_permutation", _pivot_to_permutation, errors=[OUT_OF_RANGE])
def pivot_to_permutation(pivots, out, k, m):
    for i in range(m):
        out[i] = i
    for i in range(k):
        p = pivots[i]
        if p < 0 or p >= m or i >= m:
            return 1
        out[i], out[p] = out[p], out[i]
    return 0


@over_batch("permute_rows")
def _permute_rows(attributes, x, order):
    if ((order < 0) | (order >= len(x))).any():
        raise IndexError(f"permute_rows: {OUT_OF_RANGE[1]}")
    if not attributes["inverse"]:
        return x[order]
    out = np.zeros_like(x)
    out[order] = x
    return out


@kernel("permute_rows", _permute_rows, errors=[OUT_OF_RANGE])
def permute_rows(x, order, out, n, k, *, inverse):
    if inverse:
        for i in range(n * k):
            out[i] = 0
    for i in range(n):
        p = order[i]
        if p < 0 or p >= n:
            return 1
        if inverse:
            copy(x[i * k :], out[p * k :], k)
        else:
            copy(x[p * k :], out[i * k :], k)
    return 0
