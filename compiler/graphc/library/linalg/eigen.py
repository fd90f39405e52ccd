# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues of general matrices and Sylvester's equation, by LAPACK.

LAPACK's ``geev`` scales matrices of very large and very small numbers, but the builds that SciPy brings leave
the eigenvalues scaled: it is given none of them (`moderate`).
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import copy, magnitude, over_batch, transpose, transpose_here
from graphc.library.linalg.schur import NONE, factor
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.native.builtins import call, cast, ref, type_of, view

# Powers of 2 that float32 has, whose squares it has, too.
_STEP, _BACK = 2.0**32, 2.0**-32
_NOT_FINITE = -1000
NOT_FINITE = ("LinAlgError", "the matrix has elements that are not finite")


def _eig(attributes, a):
    return tuple(np.linalg.eig(a))


def _eig_scratch(s):
    return (3 * s["n"] * s["n"] + 80 * s["n"] + 64) * 16


@kernel("eig", _eig, scratch=_eig_scratch, errors=[NO_CONVERGENCE, NOT_FINITE])
def eig(a, w, v, scratch, n):
    if n == 0:
        return 0
    kind = type_of(a)
    columns, vectors = view(scratch, kind), view(scratch[n * n * 16 :], kind)
    re = view(scratch[n * n * 32 :], kind.real)
    im, work = re[n:], view(scratch[n * n * 32 + n * 64 :], kind)
    transpose(a, columns, n, n)
    steps = moderate(columns, n)
    if steps == _NOT_FINITE:
        return 2
    info = ref(0)
    size, length, no, yes = ref(n), ref(n * n + n * 64), ref("N"), ref("V")
    found, reals = ((w, work, size, v), (re,)) if kind.is_complex else ((re, im, work, size, vectors), ())
    call("lapack_?geev", no, yes, size, columns, size, *found, size, work, length, *reals, info)
    if info[0] != 0:
        return 1
    if kind.is_complex:
        transpose_here(v, n)
    else:
        from_parts(re, im, vectors, w, v, n)
    restore(w, steps, n)
    return 0


def moderate(columns, n):
    """Multiplies by a power of 2 so that the largest element is neither large nor small; returns how often it
    was divided (or, if negative, multiplied) by `_STEP`, or `_NOT_FINITE`.
    """
    kind = type_of(columns).real
    most = cast(0.0, kind)
    for i in range(n * n):
        size = magnitude(columns[i] * cast(0.25, kind))
        if size - size != 0.0:
            return _NOT_FINITE
        most = max(most, size)
    steps = 0
    while most > _STEP:
        most = most * cast(_BACK, kind)
        steps += 1
    while most < _BACK and most != 0.0:
        most = most * cast(_STEP, kind)
        steps -= 1
    factor = cast(_BACK if steps > 0 else _STEP, kind)
    for _ in range(steps if steps > 0 else -steps):
        for i in range(n * n):
            columns[i] = columns[i] * factor
    return steps


def restore(values, steps, n):
    """The eigenvalues of the matrix before `moderate`."""
    factor = cast(_STEP if steps > 0 else _BACK, type_of(values).real)
    for _ in range(steps if steps > 0 else -steps):
        for i in range(n):
            values[i] = values[i] * factor


def from_parts(re, im, vectors, w, v, n):
    """Eigenvalues and vectors; those of conjugate pairs are two columns: real and imaginary parts."""
    j = 0
    while j < n:
        pair = im[j] != 0.0 and j + 1 < n
        w[j] = complex(re[j], im[j])
        if pair:
            w[j + 1] = complex(re[j + 1], im[j + 1])
        for i in range(n):
            x = vectors[j * n + i]
            if pair:
                y = vectors[(j + 1) * n + i]
                v[i * n + j] = complex(x, y)
                v[i * n + j + 1] = complex(x, -y)
            else:
                v[i * n + j] = x
        j += 2 if pair else 1


@over_batch("sylvester")
def _sylvester(attributes, a, b, c):
    from scipy.linalg import solve_sylvester

    return solve_sylvester(a, b, c) if c.size else c


def _sylvester_scratch(s):
    m, n = s["m"], s["n"]
    return (2 * m * m + 2 * n * n + 2 * m * n + 80 * (m + n) + 64) * 16


def schur(a, columns, vectors, work, n):
    """The Schur form of what a is by columns, and its vectors."""
    copy(a, columns, n * n)
    return factor(columns, vectors, work, work[n * 65 :], n, NONE)


def columns_product(a, b, out, m, n, k, code_a, code_b):
    """out = op(a) @ op(b) of shape (m, k), by columns; n is what is summed over."""
    kind = type_of(a)
    one, zero = ref(1.0, kind), ref(0.0, kind)
    rows_a, rows_b = ref(m if code_a == "N" else n), ref(n if code_b == "N" else k)
    a_way, b_way = ref(code_a), ref(code_b)
    call("blas_?gemm", a_way, b_way, ref(m), ref(k), ref(n), one, a, rows_a, b, rows_b, zero, out, ref(m))


@kernel("sylvester", _sylvester, scratch=_sylvester_scratch, errors=[NO_CONVERGENCE], flags="contract")
def sylvester(a, b, c, out, scratch, m, n):
    if m == 0 or n == 0:
        return 0
    kind = type_of(a)
    # By columns: B' X' + X' A' = C' for the transposes.
    s = view(scratch, kind)
    v = s[n * n :]
    r = v[n * n :]
    u = r[m * m :]
    x = u[m * m :]
    y = x[m * n :]
    work = y[m * n :]
    if schur(b, s, v, work, n) != 0 or schur(a, r, u, work, m) != 0:
        return 1
    columns_product(v, c, x, n, n, m, "C", "N")
    columns_product(x, u, y, n, m, m, "N", "N")
    info, scale, plus = ref(0), ref(1.0, kind.real), ref(1)
    rows, columns = ref(n), ref(m)
    normal = ref("N")
    call("lapack_?trsyl", normal, normal, plus, rows, columns, s, rows, r, columns, y, rows, scale, info)
    for i in range(m * n):
        y[i] = y[i] / scale[0]
    columns_product(v, y, x, n, n, m, "N", "N")
    columns_product(x, u, out, n, m, m, "N", "C")
    return 0
