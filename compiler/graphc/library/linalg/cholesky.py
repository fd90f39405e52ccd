# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cholesky factors: by rows where matrices are small, by LAPACK where they are large."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import SMALL, fill, over_batch
from graphc.native.builtins import call, conj, real, ref, sqrt

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
