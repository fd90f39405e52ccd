# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear systems: general, symmetric, Hermitian, positive definite, banded."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import (
    SMALL,
    copy,
    copy_conj,
    fill,
    lu,
    mirror,
    over_batch,
    transpose,
    transpose_here,
)
from graphc.library.linalg import cholesky as cholesky_kernels
from graphc.library.linalg.triangular import SINGULAR, backward, forward
from graphc.library.linalg.triangular import solve as triangular
from graphc.native.builtins import call, ref, type_of, view

_NAN = float("nan")
GENERAL, SYMMETRIC, HERMITIAN, POSITIVE = range(4)
_NAMES = ("gen", "sym", "her", "pos")


@over_batch("solve")
def _solve(attributes, a, b):
    assume, lower = attributes["assume"], attributes["lower"]
    if assume != GENERAL:
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        if assume == SYMMETRIC:
            a = half + half.T + np.diag(np.diag(a))
        else:
            a = half + np.conj(half.T) + np.diag(np.diag(a).real)
    if attributes["transposed"]:
        a = a.T
    try:
        if assume == POSITIVE:
            np.linalg.cholesky(a)
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        if not attributes.get("check", 1):
            return np.full_like(b, np.nan)
        message = cholesky_kernels.NOT_POSITIVE if assume == POSITIVE else SINGULAR
        raise np.linalg.LinAlgError(f"solve: {message[1]}") from None


@kernel(
    "solve",
    _solve,
    scratch=lambda s: s["n"] * s["n"] * 32 + s["n"] * s["k"] * 16 + s["n"] * 16 + 64,
    errors=[SINGULAR, cholesky_kernels.NOT_POSITIVE],
    flags="contract",
)
def solve(a, b, out, scratch, n, k, *, assume, lower, transposed, check=1):
    status = system(a, b, out, scratch, n, k, assume, lower, transposed)
    if check:
        return status
    if status != 0:
        fill(out, _NAN, n * k)
    return 0


def system(a, b, out, scratch, n, k, assume, lower, transposed):
    work = view(scratch, type_of(a))
    if assume == POSITIVE:
        return positive(a, b, out, work, view(scratch[n * n * 16 :], type_of(a)), n, k, lower, transposed)
    pivots = view(scratch[n * n * 16 :], "i32")
    if assume == GENERAL:
        copy(a, work, n * n)
    else:
        mirror(a, work, n, lower, assume == HERMITIAN)
    if n <= SMALL:
        if transposed and assume != SYMMETRIC:
            transpose_here(work, n)
        if lu.factor(work, pivots, n, n) != 0:
            return 1
        copy(b, out, n * k)
        lu.swap_like(out, pivots, n, k)
        forward(work, out, n, k, 0, 1)
        backward(work, out, n, k, 0, 0)
        return 0
    if lu.factor_columns(work, pivots, n, n) != 0:
        return 1
    info = ref(0)
    code = ref("N" if transposed else "T")
    if k == 1:
        copy(b, out, n)
        call("lapack_?getrs", code, ref(n), ref(k), work, ref(n), pivots, out, ref(n), info)
    elif k > 1:
        columns = view(scratch[n * n * 16 + n * 16 :], type_of(a))
        transpose(b, columns, n, k)
        call("lapack_?getrs", code, ref(n), ref(k), work, ref(n), pivots, columns, ref(n), info)
        transpose(columns, out, k, n)
    return 0


def positive(a, b, out, work, other, n, k, lower, transposed):
    """By a Cholesky factor; the transpose of a Hermitian matrix is its conjugate."""
    flipped = transposed and type_of(a).is_complex
    if flipped:
        copy_conj(a, other, n * n)
        status = cholesky_kernels.factor(other, work, n, lower)
    else:
        status = cholesky_kernels.factor(a, work, n, lower)
    if status != 0:
        return 2
    copy(b, out, n * k)
    triangular(work, out, n, k, lower, 0 if lower else 2, 0)
    triangular(work, out, n, k, lower, 2 if lower else 0, 0)
    return 0


BANDS = ("ValueError", "the matrix must have lower + upper + 1 rows of bands")


@over_batch("solve_banded")
def _solve_banded(attributes, ab, b):
    from scipy.linalg import solve_banded

    low, high = attributes["lower"], attributes["upper"]
    if len(ab) != low + high + 1:
        raise ValueError(f"solve_banded: {BANDS[1]}")
    if b.size == 0:
        return b
    if attributes["transposed"]:
        ab, (low, high) = _transposed_bands(ab, low, high), (high, low)
    try:
        return solve_banded((low, high), ab, b, check_finite=False)
    except np.linalg.LinAlgError:
        raise np.linalg.LinAlgError(f"solve_banded: {SINGULAR[1]}") from None


def _transposed_bands(ab, low, high):
    """The bands of the transpose."""
    out = np.zeros_like(ab)
    n = ab.shape[1]
    for row in range(low + high + 1):
        offset = row - high
        for j in range(max(0, -offset), min(n, n - offset)):
            out[low - offset, j + offset] = ab[row, j]
    return out


def _banded_scratch(s):
    # Twice the bands: LAPACK needs `lower` rows more for the exchanges.
    return s["n"] * s["p"] * 32 + s["n"] * s["k"] * 16 + s["n"] * 16 + 64


@kernel("solve_banded", _solve_banded, scratch=_banded_scratch, errors=[SINGULAR, BANDS])
def solve_banded(ab, b, out, scratch, p, n, k, *, lower, upper, transposed):
    rows = 2 * lower + upper + 1
    if p != lower + upper + 1:
        return 2
    if n == 0 or k == 0:
        return 0
    work = view(scratch, type_of(ab))
    pivots = view(scratch[n * p * 32 :], "i32")
    columns = view(scratch[n * p * 32 + n * 16 :], type_of(ab))
    for j in range(n):
        for i in range(p):
            work[j * rows + lower + i] = ab[i * n + j]
        for i in range(lower):
            work[j * rows + i] = 0.0
    info = ref(0)
    size, low, high = ref(n), ref(lower), ref(upper)
    call("lapack_?gbtrf", size, size, low, high, work, ref(rows), pivots, info)
    if info[0] != 0:
        return 1
    transpose(b, columns, n, k)
    code = ref("T" if transposed else "N")
    call("lapack_?gbtrs", code, size, low, high, ref(k), work, ref(rows), pivots, columns, size, info)
    transpose(columns, out, k, n)
    return 0
