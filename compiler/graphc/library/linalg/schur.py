# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Schur form, and functions of matrices that are computed from it: square root and logarithm.

Sources: A. Bjorck and S. Hammarling, "A Schur method for the square root of a matrix", 1983; A. H. Al-Mohy
and N. J. Higham, "Improved inverse scaling and squaring algorithms for the matrix logarithm", 2012.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import absolute, copy, over_batch, product, transpose, transpose_here
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.native.builtins import call, conj, imag, log, real, ref, sqrt, type_of, unrolled, view

# Orders of eigenvalues.
NONE, LEFT, RIGHT, INSIDE, OUTSIDE = range(5)
SORTS = (None, "lhp", "rhp", "iuc", "ouc")
# Nodes and weights of Gauss and Legendre on [0, 1], which make the Pade approximant of log(1 + x).
_NODES = (
    *(0.025446043828620736, 0.12923440720030277, 0.29707742431130141, 0.5),
    *(0.70292257568869859, 0.87076559279969723, 0.97455395617137926),
)
_WEIGHTS = (
    *(0.064742483084434838, 0.13985269574463833, 0.19091502525255946, 0.20897959183673470),
    *(0.19091502525255946, 0.13985269574463833, 0.064742483084434838),
)
# Up to this distance from 1 the approximant is exact to rounding.
_CLOSE = 0.26


@over_batch("schur")
def _schur(attributes, a):
    from scipy.linalg import schur

    if a.size == 0:
        return a, a
    return tuple(schur(a, sort=SORTS[attributes["sort"]], check_finite=False)[:2])


def _schur_scratch(s):
    return (2 * s["n"] * s["n"] + 80 * s["n"] + 64) * 16


@kernel("schur", _schur, scratch=_schur_scratch, errors=[NO_CONVERGENCE])
def schur(a, t, z, scratch, n, *, sort):
    if n == 0:
        return 0
    transpose(a, t, n, n)
    work = view(scratch, type_of(a))
    if factor(t, z, work, scratch[n * 70 * 16 :], n, sort) != 0:
        return 1
    transpose_here(t, n)
    transpose_here(z, n)
    return 0


def factor(t, z, work, more, n, sort):
    """The form in place of the matrix, and its vectors, all by columns."""
    kind = type_of(t)
    info, none = ref(0), ref(0)
    size, length, yes, no = ref(n), ref(n * 64), ref("V"), ref("N")
    values = work[n * 64 :]
    second, reals = ((), (view(more, kind.real),)) if kind.is_complex else ((values[n:],), ())
    call(
        "lapack_?gees", yes, no, none, size, t, size, none, values, *second, z, size, work, length, *reals,
        none, info,
    )  # fmt: skip
    if info[0] == 0 and sort != NONE:
        chosen = view(more, "i32")
        for i in range(n):
            chosen[i] = 1 if wanted(values, i, n, sort) else 0
        reorder(t, z, values, work, more, n, info)
    return info[0]


def wanted(values, i, n, sort):
    """True if an eigenvalue comes first."""
    x = real(values[i]) if type_of(values).is_complex else values[i]
    y = imag(values[i]) if type_of(values).is_complex else values[n + i]
    if sort == LEFT:
        return x < 0.0
    if sort == RIGHT:
        return x >= 0.0
    size = sqrt(x * x + y * y)
    if sort == INSIDE:
        return size <= 1.0
    return size > 1.0


def reorder(t, z, values, work, more, n, info):
    """Moves the chosen eigenvalues to the front."""
    kind = type_of(t)
    size, length, none, yes = ref(n), ref(n * n + n * 8 + 1), ref("N"), ref("V")
    chosen = view(more, "i32")
    # LAPACK writes integers, which nobody reads, after the choice.
    integers, count = chosen[n:], ref(0)
    space = view(more[n * 16 :], kind)
    some, other = ref(0.0, kind.real), ref(0.0, kind.real)
    second, other_work = ((), ()) if kind.is_complex else ((values[n:],), (integers, ref(n)))
    call(
        "lapack_?trsen", none, yes, chosen, size, t, size, z, size, values, *second, count, some, other,
        space, length, *other_work, info,
    )  # fmt: skip


# Functions of triangular matrices ---------------------------------------------------------------------------


def root(z):
    """The square root with a real part that is not negative."""
    scale = largest_part(z)
    if scale == 0.0:
        return z
    # Squares neither overflow nor underflow.
    x, y = real(z) / scale, imag(z) / scale
    unit = sqrt(scale)
    larger = sqrt(0.5 * (sqrt(x * x + y * y) + abs(x)))
    smaller = 0.5 * abs(y) / larger
    larger, smaller = unit * larger, unit * smaller
    if x >= 0.0:
        return complex(larger, smaller if y >= 0.0 else -smaller)
    return complex(smaller, larger if y >= 0.0 else -larger)


def largest_part(z):
    return max(abs(real(z)), abs(imag(z)))


def root_triangular(t, r, n):
    """The square root of an upper triangular matrix, by rows."""
    for j in range(n):
        for i in range(n):
            r[i * n + j] = 0.0
        r[j * n + j] = root(t[j * n + j])
        for i in range(j - 1, -1, -1):
            total = t[i * n + j]
            for k in range(i + 1, j):
                total -= r[i * n + k] * r[k * n + j]
            below = r[i * n + i] + r[j * n + j]
            # Of a zero eigenvalue that occurs again there is no root, unless nothing couples them.
            if largest_part(total) != 0.0 or largest_part(below) != 0.0:
                r[i * n + j] = total / below


def turned_back(z, r, w, out, n):
    """out = z @ r @ z^H for vectors by columns, in w."""
    transpose_here(z, n)
    product(z, r, w, n, n, n)
    for i in range(n):
        for j in range(i):
            z[i * n + j], z[j * n + i] = z[j * n + i], z[i * n + j]
    for i in range(n * n):
        z[i] = conj(z[i])
    product(w, z, out, n, n, n)


def triangular_form(a, t, z, work, scratch, n):
    """t upper triangular, by rows, and vectors by columns in z; returns 1 if LAPACK fails."""
    transpose(a, t, n, n)
    if factor(t, z, work, scratch[(3 * n * n + n * 70) * 16 :], n, NONE) != 0:
        return 1
    transpose_here(t, n)
    return 0


@over_batch("sqrtm")
def _sqrtm(attributes, a):
    from scipy.linalg import sqrtm

    return np.asarray(sqrtm(a), a.dtype) if a.size else a


def _function_scratch(s):
    return (6 * s["n"] * s["n"] + 100 * s["n"] + 64) * 16


@kernel("sqrtm", _sqrtm, scratch=_function_scratch, errors=[NO_CONVERGENCE], flags="contract")
def sqrtm(a, out, scratch, n):
    if n == 0:
        return 0
    t = view(scratch, type_of(a))
    z, r = t[n * n :], t[2 * n * n :]
    work = t[3 * n * n :]
    if triangular_form(a, t, z, work, scratch, n) != 0:
        return 1
    root_triangular(t, r, n)
    turned_back(z, r, t, out, n)
    return 0


@over_batch("logm")
def _logm(attributes, a):
    from scipy.linalg import logm

    return np.asarray(logm(a), a.dtype) if a.size else a


@kernel("logm", _logm, scratch=_function_scratch, errors=[NO_CONVERGENCE], flags="contract")
def logm(a, out, scratch, n):
    if n == 0:
        return 0
    t = view(scratch, type_of(a))
    z, r = t[n * n :], t[2 * n * n :]
    work = t[3 * n * n :]
    if triangular_form(a, t, z, work, scratch, n) != 0:
        return 1
    log_triangular(t, r, work, n)
    turned_back(z, r, t, out, n)
    return 0


def log_triangular(t, r, work, n):
    """The logarithm of an upper triangular matrix, which is used up: roots until it is close to 1."""
    size = 0.0 * real(t[0])
    for i in range(n):
        size = max(size, largest_part(t[i * n + i]))
    if size > 0.0 and size - size == 0.0:
        for i in range(n * n):
            t[i] = t[i] / size
    roots = 0
    scale = 1.0
    while distance(t, n) > _CLOSE and roots < 100:
        root_triangular(t, r, n)
        copy(r, t, n * n)
        roots += 1
        scale = 2.0 * scale
    for i in range(n):
        t[i * n + i] = t[i * n + i] - 1.0
    for i in range(n * n):
        r[i] = 0.0
    for i in unrolled(len(_NODES)):
        add_fraction(t, r, work, n, _NODES[i], scale * _WEIGHTS[i])
    if size > 0.0 and size - size == 0.0:
        for i in range(n):
            r[i * n + i] += log(size)


def distance(t, n):
    """The largest sum of magnitudes of a column of t - 1."""
    largest = 0.0
    for j in range(n):
        total = absolute(t[j * n + j] - 1.0) * 1.0
        for i in range(j):
            total += absolute(t[i * n + j])
        if total > largest or total != total:
            largest = total
    return largest


def add_fraction(x, r, w, n, node, weight):
    """r += weight * (1 + node x)^-1 x for an upper triangular x."""
    for j in range(n):
        for i in range(j, -1, -1):
            total = x[i * n + j]
            for k in range(i + 1, j + 1):
                total -= node * x[i * n + k] * w[k * n + j]
            w[i * n + j] = total / (1.0 + node * x[i * n + i])
            r[i * n + j] += weight * w[i * n + j]
