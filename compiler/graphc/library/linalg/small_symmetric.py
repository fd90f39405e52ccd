# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Eigenvalues and eigenvectors of small symmetric matrices.

Reflections make the matrix tridiagonal, with 2/3 n^3 multiplications and additions; their product takes as
many. Rotations with shifts then make it diagonal: about n^2, each also of two vectors. For n = 8 that is a
thousand instructions on vectors, and 70 rotations that wait for each other, which take most of the time.

Vectors are those of LAPACK but for their signs, and for what is free where values are equal.

Sources: J. H. Wilkinson, "The algebraic eigenvalue problem", 1965; A. Dubrulle, R. S. Martin and
J. H. Wilkinson, "The implicit QL algorithm", 1968.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.linalg.small import (
    ROWS,
    WIDTH,
    epsilon,
    moderate,
    nothing,
    reflections,
    reflector,
    rotate,
    rotation,
    sort_order,
    transposed,
)
from graphc.native.builtins import cast, choose, copysign, local, positions, put, row, sqrt, total, type_of

_SWEEPS = 30


def eigen(a, w, v, n, lower, vectors):
    """Writes eigenvalues in ascending order and vectors (columns); returns 1 if that is left to LAPACK."""
    kind = type_of(a)
    x, z = local(ROWS * WIDTH, kind), local(ROWS * WIDTH, kind)
    d, e, factors = local(ROWS, kind), local(ROWS, kind), local(ROWS, kind)
    if not moderate(load_half(a, x, n, lower)):
        return 1
    if tridiagonal(x, d, e, factors, n) != 0:
        return 1
    if vectors:
        # The matrix itself is no longer needed once the product of the reflections is there.
        reflections(x, factors, z, n, n - 2, 1)
        transposed(z, x, n, n)
    # Rotations from the large end to the small one converge best, and change small values least.
    if abs(d[0]) > abs(d[n - 1]):
        turned(d, n)
        turned(e, n - 1)
        if vectors:
            turned_rows(x, n)
    if diagonal(d, e, x, n, vectors) != 0:
        return 1
    order = local(ROWS, "i64")
    sort_order(d, order, n, 0)
    for j in range(n):
        w[j] = d[order[j]]
    if vectors:
        for j in range(n):
            source = x[order[j] * WIDTH :]
            for i in range(n):
                v[i * n + j] = source[i]
    return 0


def load_half(a, x, n, lower):
    """Reads one triangle as a whole matrix; returns the sum of absolute values."""
    size = nothing(a)
    for i in range(n + 1):
        put(x, i * WIDTH, size)
    for i in range(n):
        for j in range(i + 1):
            value = a[i * n + j] if lower else a[j * n + i]
            x[i * WIDTH + j] = value
            x[j * WIDTH + i] = value
    for i in range(n):
        size += abs(row(x, i * WIDTH, WIDTH))
    return total(size)


def tridiagonal(x, d, e, factors, n):
    """Writes the diagonals, and the vectors of the reflections to the rows of x."""
    found = local(4, type_of(x))
    other = local(WIDTH, type_of(x))
    for k in range(n - 2):
        d[k] = x[k * WIDTH + k]
        tail = choose(positions(WIDTH) > k, row(x, k * WIDTH, WIDTH), 0.0)
        if reflector(tail, k + 1, x, found, k) != 0:
            return 1
        f = found[0]
        factors[k] = f
        e[k] = found[1]
        if f != 0.0:
            v = x[k * WIDTH :]
            # Two sums at a time; the row after the last one is 0, and so is its element of v.
            first, second = nothing(x), nothing(x)
            for i in range(k + 1, n, 2):
                first += v[i] * row(x, i * WIDTH, WIDTH)
                second += v[i + 1] * row(x, (i + 1) * WIDTH, WIDTH)
            p = choose(positions(WIDTH) > k, (first + second) * f, 0.0)
            vector = row(v, 0, WIDTH)
            w = p - (0.5 * f * total(p * vector)) * vector
            put(other, 0, w)
            for i in range(k + 1, n):
                put(x, i * WIDTH, row(x, i * WIDTH, WIDTH) - v[i] * w - other[i] * vector)
    if n > 1:
        d[n - 2] = x[(n - 2) * WIDTH + n - 2]
        e[n - 2] = x[(n - 2) * WIDTH + n - 1]
    d[n - 1] = x[(n - 1) * WIDTH + n - 1]
    return 0


def turned(x, n):
    for i in range(n // 2):
        x[i], x[n - 1 - i] = x[n - 1 - i], x[i]


def turned_rows(x, n):
    for i in range(n // 2):
        a, b = row(x, i * WIDTH, WIDTH), row(x, (n - 1 - i) * WIDTH, WIDTH)
        put(x, i * WIDTH, b)
        put(x, (n - 1 - i) * WIDTH, a)


def diagonal(d, e, z, n, vectors):
    """Makes d the eigenvalues, and rows of z the vectors; returns 1 if that takes too long."""
    small = epsilon(d[0])
    turn = local(4, type_of(d))
    e[n - 1] = 0.0
    for start in range(n):
        sweeps = 0
        while True:
            end = start
            while end < n - 1 and abs(e[end]) > small * (abs(d[end]) + abs(d[end + 1])):
                end += 1
            if end == start:
                break
            if sweeps == _SWEEPS:
                return 1
            sweeps += 1
            sweep(d, e, z, start, end, turn, vectors)
    return 0


def sweep(d, e, z, start, end, turn, vectors):
    """One step of QL between two places, with the shift of the 2 x 2 matrix at the start."""
    half = (d[start + 1] - d[start]) / (2.0 * e[start])
    g = d[end] - d[start] + e[start] / (half + copysign(sqrt(half * half + 1.0), half))
    s, c, p = cast(1.0, type_of(g)), cast(1.0, type_of(g)), cast(0.0, type_of(g))
    for i in range(end - 1, start - 1, -1):
        f = s * e[i]
        b = c * e[i]
        rotation(g, f, turn)
        c, s = turn[0], turn[1]
        e[i + 1] = turn[2]
        if vectors:
            rotate(z[(i + 1) * WIDTH :], z[i * WIDTH :], c, s)
        g = d[i + 1] - p
        t = (d[i] - g) * s + 2.0 * c * b
        p = s * t
        d[i + 1] = g + p
        g = c * t - b
    d[start] -= p
    e[start] = g
    e[end] = 0.0
