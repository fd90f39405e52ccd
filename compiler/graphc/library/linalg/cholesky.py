# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky factors: by rows where matrices are small, by LAPACK where they are large."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import SMALL, fill, over_batch
from graphc.native.builtins import call, conj, real, ref, sqrt, type_of

# Rows of a block of the pullback.
_BLOCK = 16
_NAN = float("nan")
NOT_POSITIVE = ("LinAlgError", "the matrix is not positive definite")


@over_batch("cholesky")
def _reference(attributes, a):
    whole = a if attributes["lower"] else np.conj(a.T)
    try:
        lower = np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        if attributes["check"]:
            raise np.linalg.LinAlgError(f"cholesky: {NOT_POSITIVE[1]}") from None
        lower = np.full_like(a, np.nan)
    return lower if attributes["lower"] else np.conj(lower.T)


@kernel("cholesky", _reference, errors=[NOT_POSITIVE], flags="reassoc contract")
def cholesky(a, out, n, *, lower, check):
    if factor(a, out, n, lower) != 0:
        if check:
            return 1
        fill(out, _NAN, n * n)
    return 0


def factor(a, out, n, lower):
    """Writes the factor; returns 1 if there is none."""
    if n <= SMALL:
        return small(a, out, n, lower)
    for i in range(n):
        for j in range(n):
            out[i * n + j] = a[i * n + j] if (j <= i) == (lower == 1) or i == j else 0.0
    info = ref(0)
    # By columns this is the conjugate, whose factor is the conjugate transpose of ours.
    call("lapack_?potrf", ref("U" if lower else "L"), ref(n), out, ref(n), info)
    return 1 if info[0] != 0 else 0


def small(a, out, n, lower):
    """The lower factor, transposed at the end where the upper one is asked for.

    First the factors L D L^H with ones on the diagonal of L, row by row: the next row waits for one division
    then, and not for a square root and a division.
    """
    for i in range(n):
        for j in range(i):
            total = a[i * n + j] if lower else conj(a[j * n + i])
            for k in range(j):
                total -= out[i * n + k] * conj(out[j * n + k])
            out[i * n + j] = total
        rest = real(a[i * n + i])
        for j in range(i):
            x = out[i * n + j]
            y = x / real(out[j * n + j])
            out[i * n + j] = y
            rest -= real(x * conj(y))
        if not rest > 0.0:
            return 1
        out[i * n + i] = rest
    for j in range(n):
        root = sqrt(real(out[j * n + j]))
        out[j * n + j] = root
        for i in range(j):
            out[i * n + j] = 0.0
        for i in range(j + 1, n):
            out[i * n + j] *= root
    if not lower:
        for i in range(n):
            for j in range(i):
                out[j * n + i] = conj(out[i * n + j])
                out[i * n + j] = 0.0
    return 0


@over_batch("cholesky_pullback")
def _pullback(attributes, factor, g):
    half = np.tril(factor.T @ np.tril(g))
    half -= np.diag(np.diag(half) / 2)
    whole = np.linalg.solve(factor.T, np.linalg.solve(factor.T, half.T).T)
    return np.tril(whole + whole.T) - np.diag(np.diag(whole))


@kernel("cholesky_pullback", _pullback, flags="reassoc contract")
def cholesky_pullback(factor, g, out, n):
    """The steps of the factorization backwards, by blocks from the last one to the first; real numbers.

    A step leaves the slopes of its column of blocks, twice those on the diagonal: one product with it takes
    what the rows of the block have in common with those below off the slopes to the left.

    Source: I. Murray, "Differentiation of the Cholesky decomposition", 2016.
    """
    for i in range(n):
        for j in range(i + 1):
            out[i * n + j] = g[i * n + j]
    count = (n + _BLOCK - 1) // _BLOCK
    for step in range(count):
        start = (count - 1 - step) * _BLOCK
        end = min(start + _BLOCK, n)
        above, corner, below = start * n, start * n + start, end * n + start
        if end < n:
            left, upper, way, unity = ref("L"), ref("U"), ref("N"), ref("N")
            size, rest, one = ref(end - start), ref(n - end), ref(1.0, type_of(g))
            a, x = factor[corner:], out[below:]
            call("blas_?trsm", left, upper, way, unity, size, rest, one, a, ref(n), x, ref(n))
            take(out[below:], factor[above:], out[end * n :], n - end, end - start, start, n, "N")
            take(out[below:], factor[below:], out[corner:], end - start, n - end, end - start, n, "T")
        block(factor, out, start, end, n)
        take(out[corner:], factor[above:], out[above:], end - start, n - start, start, n, "T")
    for i in range(n):
        out[i * n + i] = out[i * n + i] * 0.5
        for j in range(i + 1, n):
            out[i * n + j] = 0.0


def take(a, b, out, m, n, k, width, way):
    """out -= a @ b, of shapes (m, n) and (n, k), or a.T @ b; rows are `width` numbers apart."""
    if m > 0 and n > 0 and k > 0:
        one, minus, plain, other = ref(1.0, type_of(a)), ref(-1.0, type_of(a)), ref("N"), ref(way)
        step = ref(width)
        call("blas_?gemm", plain, other, ref(k), ref(m), ref(n), minus, b, step, a, step, one, out, step)


def block(factor, out, start, end, n):
    """The pullback within a block, row by row; the block becomes symmetric."""
    for p in range(end - 1, start - 1, -1):
        pivot = factor[p * n + p]
        slope = out[p * n + p]
        for i in range(p + 1, end):
            change = out[i * n + p] / pivot
            slope -= change * factor[i * n + p]
            out[i * n + p] = change
            out[p * n + i] = change
        slope = slope / pivot
        out[p * n + p] = slope
        for j in range(start, p):
            out[p * n + j] -= slope * factor[p * n + j]
        for i in range(p + 1, end):
            change = out[i * n + p]
            for j in range(start, p):
                out[p * n + j] -= change * factor[i * n + j]
                out[i * n + j] -= change * factor[p * n + j]
