# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that algorithms on small matrices share: they lie in local memory with rows of a fixed width.

Each row is one vector of the language, filled up with zeros, so that the work on a row is a few instructions
without a loop. Larger matrices are left to LAPACK. So are matrices for which an
algorithm here would need scaling (numbers near the largest or smallest ones, NaN, infinities), and those
where it does not converge: the routines then say so, and the errors are LAPACK's.

The time of these algorithms is that of their chains: a reflection waits for a root and a division, and so
does each rotation, 50 to 70 cycles; the rows are updated meanwhile.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.native.builtins import cast, choose, local, positions, put, row, spread, sqrt, total, type_of

# Largest size done here, and how many rows local matrices have: some loops do two rows at once. Routines of
# half the width, too, were 10 % faster for half the size, but doubled the time of code generation.
WIDTH, ROWS = 16, 17
# By the bits of a number: squares of what is between the limits, and sums of these, are exact to rounding;
# a sum of squares below the last one may have lost digits.
_LOWEST = {32: 1e-8, 64: 1e-90}
_HIGHEST = {32: 1e16, 64: 1e145}
_FAINT = {32: 1e-28, 64: 1e-280}
_EPSILON = {32: float(np.finfo(np.float32).eps), 64: float(np.finfo(np.float64).eps)}


def epsilon(x):
    """The distance from 1 to the next number, of the type of x."""
    return _EPSILON[type_of(x).bits]


def moderate(size):
    """True if a matrix whose elements have absolute values of this sum needs no scaling."""
    return _LOWEST[type_of(size).bits] < size < _HIGHEST[type_of(size).bits]


def nothing(x):
    """A row of zeros, of the type of x."""
    return spread(cast(0.0, type_of(x)), WIDTH)


def load(a, x, m, n):
    """Reads a matrix (m, n); returns the sum of its absolute values."""
    size = nothing(a)
    for i in range(m):
        values = row(a, i * n, WIDTH, n)
        put(x, i * WIDTH, values)
        size += abs(values)
    return total(size)


def load_transposed(a, x, m, n):
    """Reads a matrix (m, n) as its transpose; returns the sum of its absolute values."""
    size = nothing(a)
    for j in range(n):
        put(x, j * WIDTH, size)
    for i in range(m):
        size += abs(row(a, i * n, WIDTH, n))
        for j in range(n):
            x[j * WIDTH + i] = a[i * n + j]
    return total(size)


def unit(x, m):
    """The first columns of the identity of size m, as many as fit."""
    for i in range(m):
        put(x, i * WIDTH, choose(positions(WIDTH) == i, 1.0, nothing(x)))


def transposed(x, out, m, n):
    """out of n rows = the transpose of the first m rows of x."""
    for j in range(n):
        put(out, j * WIDTH, nothing(x))
    for i in range(m):
        for j in range(n):
            out[j * WIDTH + i] = x[i * WIDTH + j]


def reflector(x, k, v, factors, number):
    """The reflection I - f v v^T that turns the lanes of x from k on into a multiple of the k-th unit vector.

    Lanes of x before k are 0. Writes v to row `number` of v, f and the multiple to `factors`.
    Returns 1 where squares of x are too small for that.
    """
    put(v, number * WIDTH, x)
    head = v[number * WIDTH + k]
    tail = choose(positions(WIDTH) > k, x, 0.0)
    square = total(tail * tail)
    factors[0] = 0.0
    factors[1] = head
    if square < _FAINT[type_of(x).bits]:
        return 1 if total(abs(tail)) > 0.0 else 0
    size = sqrt(square + head * head)
    # Of the sign that makes no difference of equal numbers.
    onto = -size if head >= 0.0 else size
    first = head - onto
    factors[0] = -1.0 / (onto * first)
    factors[1] = onto
    v[number * WIDTH + k] = first
    return 0


def below(x, k, m):
    """Elements of column k from row k to row m as a vector, in their places."""
    column = local(WIDTH, type_of(x))
    for i in range(k, m):
        column[i] = x[i * WIDTH + k]
    lanes = positions(WIDTH)
    return choose((lanes >= k) & (lanes < m), row(column, 0, WIDTH), 0.0)


def reflect(x, v, f, first, m):
    """Rows of x from `first` to m become (I - f v v^T) x; v is 0 elsewhere."""
    # Two sums at a time, as one waits for its additions.
    sums, others = v[m - 1] * row(x, (m - 1) * WIDTH, WIDTH), nothing(x)
    for i in range(first, m - 2, 2):
        sums += v[i] * row(x, i * WIDTH, WIDTH)
        others += v[i + 1] * row(x, (i + 1) * WIDTH, WIDTH)
    if (m - first) % 2 == 0:
        others += v[m - 2] * row(x, (m - 2) * WIDTH, WIDTH)
    sums = (sums + others) * f
    for i in range(first, m):
        put(x, i * WIDTH, row(x, i * WIDTH, WIDTH) - v[i] * sums)


def reflections(v, factors, out, m, count, offset):
    """The product of reflections; number k, v[k], is of the lanes from k + offset on."""
    unit(out, m)
    for k in range(count - 1, -1, -1):
        if factors[k] != 0.0:
            reflect(out, v[k * WIDTH :], factors[k], k + offset, m)


def rotation(f, g, out):
    """Writes c, s and r with c f + s g = r and c g - s f = 0."""
    square = f * f + g * g
    if square > _FAINT[type_of(f).bits]:
        r = sqrt(square)
        inverse = 1.0 / r
        out[0] = f * inverse
        out[1] = g * inverse
        out[2] = r
        return
    size = max(abs(f), abs(g))
    if size == 0.0:
        out[0] = 1.0
        out[1] = 0.0
        out[2] = 0.0
        return
    f, g = f / size, g / size
    r = sqrt(f * f + g * g)
    out[0] = f / r
    out[1] = g / r
    out[2] = r * size


def rotate(x, y, c, s):
    """Two rows become c x + s y and c y - s x."""
    a, b = row(x, 0, WIDTH), row(y, 0, WIDTH)
    put(x, 0, c * a + s * b)
    put(y, 0, c * b - s * a)


def sort_order(values, order, n, descending):
    """Positions that sort a few numbers; the sorting is by insertion."""
    for i in range(n):
        x = values[i]
        j = i
        while j > 0 and (x > values[order[j - 1]] if descending else x < values[order[j - 1]]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
