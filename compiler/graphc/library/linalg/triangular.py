# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Triangular systems: by rows where matrices are small, by BLAS where they are large."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import SMALL, copy, fill, over_batch
from graphc.native.builtins import call, conj, ref, type_of

_NAN = float("nan")
SINGULAR = ("LinAlgError", "the matrix is singular")


@over_batch("solve_triangular")
def _reference(attributes, a, b):
    from scipy.linalg import solve_triangular

    lower, unit = bool(attributes["lower"]), bool(attributes["unit_diagonal"])
    if not unit and (np.diag(a) == 0).any():
        if attributes.get("check", 1):
            raise np.linalg.LinAlgError(f"solve_triangular: {SINGULAR[1]}")
        return np.full_like(b, np.nan)
    if b.size == 0:
        return np.zeros_like(b)
    return solve_triangular(
        a, b, trans=attributes["trans"], lower=lower, unit_diagonal=unit, check_finite=False
    )


@kernel("solve_triangular", _reference, errors=[SINGULAR], flags="contract")
def solve_triangular(a, b, out, n, k, *, lower, trans, unit_diagonal, check=1):
    if not unit_diagonal:
        for i in range(n):
            if a[i * n + i] == 0.0:
                if check:
                    return 1
                fill(out, _NAN, n * k)
                return 0
    copy(b, out, n * k)
    solve(a, out, n, k, lower, trans, unit_diagonal)
    return 0


def solve(a, x, n, k, lower, trans, unit):
    """Solves in place."""
    if n <= SMALL:
        if (lower == 1) == (trans == 0):
            forward(a, x, n, k, trans, unit)
        else:
            backward(a, x, n, k, trans, unit)
    elif k > 0:
        kind = type_of(a)
        # By columns, this is the transposed system with the transposed matrix on the right.
        code = "N" if trans == 0 else "T" if trans == 1 else "C"
        side, half, unity = ref("R"), ref("U" if lower else "L"), ref("U" if unit else "N")
        call("blas_?trsm", side, half, ref(code), unity, ref(k), ref(n), ref(1.0, kind), a, ref(n), x, ref(k))


def entry(a, i, j, n, trans):
    """An element of the matrix, of its transpose, or of its conjugate transpose."""
    if trans == 0:
        return a[i * n + j]
    if trans == 1:
        return a[j * n + i]
    return conj(a[j * n + i])


def forward(a, x, n, k, trans, unit):
    for i in range(n):
        for j in range(i):
            f = entry(a, i, j, n, trans)
            for c in range(k):
                x[i * k + c] -= f * x[j * k + c]
        if not unit:
            pivot = entry(a, i, i, n, trans)
            for c in range(k):
                x[i * k + c] = x[i * k + c] / pivot


def backward(a, x, n, k, trans, unit):
    for i in range(n - 1, -1, -1):
        for j in range(n - 1, i, -1):
            f = entry(a, i, j, n, trans)
            for c in range(k):
                x[i * k + c] -= f * x[j * k + c]
        if not unit:
            pivot = entry(a, i, i, n, trans)
            for c in range(k):
                x[i * k + c] = x[i * k + c] / pivot
