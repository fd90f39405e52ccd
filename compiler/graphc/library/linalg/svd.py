# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Singular values and vectors, and the pseudo-inverse: of small real matrices here, else by LAPACK.

LAPACK sees the transpose: its left vectors by columns are the rows of ours on the right.

Reflections from both sides make the matrix bidiagonal, with 4/3 n^3 multiplications and additions if it is
square; the two products of reflections take as many. Rotations from both sides then make it diagonal: 2 n^2,
and for n = 8 the time is that of 130 rotations which wait for each other. Wide matrices are transposed first.

Vectors are those of LAPACK but for their signs, and for what is free where values are equal.

Sources: G. Golub and W. Kahan, "Calculating the singular values and pseudo-inverse of a matrix", 1965;
J. Demmel and W. Kahan, "Accurate singular values of bidiagonal matrices", 1990.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import copy, identity, magnitude, over_batch
from graphc.library.linalg.small import (
    ROWS,
    WIDTH,
    below,
    epsilon,
    load,
    load_transposed,
    moderate,
    reflect,
    reflections,
    reflector,
    rotate,
    rotation,
    sort_order,
    transposed,
)
from graphc.library.linalg.small_symmetric import turned, turned_rows
from graphc.library.linalg.symmetric import NO_CONVERGENCE
from graphc.native.builtins import (
    call,
    cast,
    choose,
    conj,
    copysign,
    local,
    positions,
    put,
    ref,
    row,
    sqrt,
    total,
    type_of,
    view,
)

# Sweeps that a value may take, on average.
_SWEEPS = 30
# Where the second half of an array for the vectors of both sides begins.
_HALF = ROWS * WIDTH


def singular(a, u, s, vh, m, n, columns, rows, vectors):
    """Writes the decomposition, `columns` of u and `rows` of vh; returns 1 if that is left to LAPACK."""
    kind = type_of(a)
    x, left, right, both = (
        local(_HALF, kind),
        local(_HALF, kind),
        local(_HALF, kind),
        local(2 * _HALF, kind),
    )
    d, e = local(ROWS, kind), local(ROWS, kind)
    left_factors, right_factors = local(ROWS, kind), local(ROWS, kind)
    high, low = max(m, n), min(m, n)
    size = load(a, x, m, n) if m >= n else load_transposed(a, x, m, n)
    if not moderate(size):
        return 1
    if bidiagonal(x, d, e, left, right, left_factors, right_factors, high, low) != 0:
        return 1
    # Of the vectors on the left, as many as are wanted.
    count = columns if m >= n else rows
    if vectors:
        reflections(left, left_factors, x, high, low, 0)
        transposed(x, both, high, count)
        reflections(right, right_factors, x, low, low - 2, 1)
        transposed(x, both[_HALF:], low, low)
    first, second = 0, _HALF
    # Rotations from the large end to the small one converge best, and change small values least.
    if abs(d[0]) < abs(d[low - 1]):
        turned(d, low)
        turned(e, low - 1)
        if vectors:
            turned_rows(both, low)
            turned_rows(both[_HALF:], low)
        first, second = _HALF, 0
    if diagonal(d, e, both, first, second, low, vectors) != 0:
        return 1
    for j in range(low):
        if d[j] < 0.0:
            d[j] = -d[j]
            if vectors:
                put(both, second + j * WIDTH, -row(both, second + j * WIDTH, WIDTH))
    order = local(ROWS, "i64")
    sort_order(d, order, low, 1)
    for j in range(low):
        s[j] = d[order[j]]
    if vectors:
        for j in range(low, count):
            order[j] = j
        if m >= n:
            write_columns(both, order, u, m, count)
            write_rows(both[_HALF:], order, vh, low, n)
        else:
            write_columns(both[_HALF:], order, u, m, low)
            write_rows(both, order, vh, count, n)
    return 0


def write_columns(x, order, out, m, count):
    for j in range(count):
        source = x[order[j] * WIDTH :]
        for i in range(m):
            out[i * count + j] = source[i]


def write_rows(x, order, out, count, n):
    for j in range(count):
        put(out, j * n, row(x, order[j] * WIDTH, WIDTH), n)


def bidiagonal(x, d, e, left, right, left_factors, right_factors, m, n):
    """Writes the diagonals of an upper bidiagonal matrix, and the reflections on both sides of it."""
    found = local(2, type_of(x))
    for k in range(n):
        if reflector(below(x, k, m), k, left, found, k) != 0:
            return 1
        left_factors[k] = found[0]
        d[k] = found[1]
        if found[0] != 0.0:
            reflect(x, left[k * WIDTH :], found[0], k, m)
        if k == n - 1:
            break
        tail = choose(positions(WIDTH) > k, row(x, k * WIDTH, WIDTH), 0.0)
        if reflector(tail, k + 1, right, found, k) != 0:
            return 1
        right_factors[k] = found[0]
        e[k] = found[1]
        if found[0] != 0.0:
            vector = row(right, k * WIDTH, WIDTH)
            for i in range(k + 1, m):
                values = row(x, i * WIDTH, WIDTH)
                put(x, i * WIDTH, values - (found[0] * total(values * vector)) * vector)
    return 0


def diagonal(d, e, both, left, right, n, vectors):
    """Makes d the singular values but for signs and order; returns 1 if that takes too long.

    Rows of `both` from `left` and from `right` on are the vectors.
    """
    kind = type_of(d)
    tolerance = 8.0 * epsilon(d)
    turn = local(4, kind)
    last = n - 1
    sweeps = _SWEEPS * n
    while last > 0:
        first = last
        while first > 0 and e[first - 1] != 0.0:
            first -= 1
        # What the smallest singular value is at least; an element that is small beside it may become 0.
        bound, most, done = abs(d[first]), abs(d[first]), False
        for j in range(first, last):
            size, following = abs(e[j]), abs(d[j + 1])
            if size <= tolerance * bound or (j == last - 1 and size <= tolerance * following):
                e[j] = 0.0
                done = True
                break
            bound = following * (bound / (bound + size))
            most = max(most, max(size, following))
        if done or first == last:
            if e[last - 1] == 0.0:
                last -= 1
            continue
        if sweeps == 0:
            return 1
        sweeps -= 1
        if bound * bound > epsilon(d) * most * most:
            shift = smallest(d[last - 1], e[last - 1], d[last])
            sweep(d, e, both, left, right, first, last, shift, turn, vectors)
        else:
            plain_sweep(d, e, both, left, right, first, last, turn, vectors)
    return 0


def smallest(f, g, h):
    """About the smaller singular value of [[f, g], [0, h]]."""
    f, h = abs(f), abs(h)
    larger = 0.5 * (sqrt((f + h) * (f + h) + g * g) + sqrt((f - h) * (f - h) + g * g))
    return f * (h / larger) if larger > 0.0 else larger


def sweep(d, e, both, left, right, first, last, shift, turn, vectors):
    """One step of QR with a shift."""
    f = (abs(d[first]) - shift) * (copysign(cast(1.0, type_of(d)), d[first]) + shift / d[first])
    g = e[first]
    for i in range(first, last):
        rotation(f, g, turn)
        c, s = turn[0], turn[1]
        if i > first:
            e[i - 1] = turn[2]
        f = c * d[i] + s * e[i]
        e[i] = c * e[i] - s * d[i]
        g = s * d[i + 1]
        d[i + 1] = c * d[i + 1]
        if vectors:
            rotate(both[right + i * WIDTH :], both[right + (i + 1) * WIDTH :], c, s)
        rotation(f, g, turn)
        c, s = turn[0], turn[1]
        d[i] = turn[2]
        f = c * e[i] + s * d[i + 1]
        d[i + 1] = c * d[i + 1] - s * e[i]
        if i < last - 1:
            g = s * e[i + 1]
            e[i + 1] = c * e[i + 1]
        if vectors:
            rotate(both[left + i * WIDTH :], both[left + (i + 1) * WIDTH :], c, s)
    e[last - 1] = f


def plain_sweep(d, e, both, left, right, first, last, turn, vectors):
    """One step without a shift: it subtracts nothing, so that small values keep their digits."""
    one = cast(1.0, type_of(d))
    c, before, s_before = one, one, one
    for i in range(first, last):
        rotation(d[i] * c, e[i], turn)
        c, s, r = turn[0], turn[1], turn[2]
        if i > first:
            e[i - 1] = s_before * r
        if vectors:
            rotate(both[right + i * WIDTH :], both[right + (i + 1) * WIDTH :], c, s)
        rotation(before * r, d[i + 1] * s, turn)
        before, s_before = turn[0], turn[1]
        d[i] = turn[2]
        if vectors:
            rotate(both[left + i * WIDTH :], both[left + (i + 1) * WIDTH :], before, s_before)
    rest = d[last] * c
    e[last - 1] = rest * s_before
    d[last] = rest * before


@over_batch("svd")
def _svd(attributes, a, k):
    return tuple(np.linalg.svd(a, full_matrices=False))


@over_batch("svd_full")
def _svd_full(attributes, a, k):
    return tuple(np.linalg.svd(a))


@over_batch("singular_values")
def _values(attributes, a, k):
    return np.linalg.svd(a, compute_uv=False)


def _scratch(s):
    # A copy, numbers of the matrix's dtype, reals and integers, each with what LAPACK asks for at least.
    return s["m"] * s["n"] * 16 + work_bytes(s["m"], s["n"], s["k"]) * 2 + 8 * s["k"] * 4 + 256


def work_bytes(m, n, k):
    return (4 * k * k + 80 * (m + n) + 2 * k * (m + n) + 64) * 16


def decompose(job, a, u, s, vh, scratch, m, n, k, columns_u, rows_v):
    kind = type_of(a)
    if k == 0:
        identity(u, m, columns_u)
        identity(vh, rows_v, n)
        return 0
    if not kind.is_complex:
        if m <= WIDTH and n <= WIDTH:
            if singular(a, u, s, vh, m, n, columns_u, rows_v, job != "N") == 0:
                return 0
    # With infinities LAPACK may never return.
    if not is_finite(a, m * n):
        return 1
    matrix = view(scratch, kind)
    work = view(scratch[m * n * 16 :], kind)
    reals = view(scratch[m * n * 16 + work_bytes(m, n, k) :], kind.real)
    integers = view(scratch[m * n * 16 + 2 * work_bytes(m, n, k) :], "i32")
    copy(a, matrix, m * n)
    info = ref(0)
    length = ref(work_bytes(m, n, k) // 16)
    # Rows of u have k elements, or m where all of them are asked for.
    way, wide, high, row = ref(job), ref(n), ref(m), ref(k if job == "S" else m)
    call(
        "lapack_?gesdd", way, wide, high, matrix, wide, s, vh, wide, u, row, work, length,
        *(reals,) if kind.is_complex else (), integers, info,
    )  # fmt: skip
    return 1 if info[0] != 0 else 0


def is_finite(a, n):
    """True if all of n numbers are; sums of numbers times 0 are 0 or NaN."""
    rest = magnitude(a[0]) * 0.0
    for i in range(1, n):
        rest += magnitude(a[i]) * 0.0
    return rest == 0.0


def _cost(s):
    # Rotations that wait for each other, and for large matrices the multiplications.
    return s["m"] * s["n"] * (s["k"] * 100 + 45_000) + 100_000


@kernel("svd", _svd, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def svd(a, u, s, vh, scratch, m, n, k):
    return decompose("S", a, u, s, vh, scratch, m, n, k, k, k)


@kernel("svd_full", _svd_full, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def svd_full(a, u, s, vh, scratch, m, n, k):
    return decompose("A", a, u, s, vh, scratch, m, n, k, m, n)


@kernel("singular_values", _values, scratch=_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_cost)
def singular_values(a, s, scratch, m, n, k):
    nothing = view(scratch[m * n * 16 + 2 * work_bytes(m, n, k) + 32 * k :], type_of(a))
    return decompose("N", a, nothing, s, nothing, scratch, m, n, k, 0, 0)


@over_batch("pinv")
def _pinv(attributes, a, rcond):
    if not a.size:
        return np.zeros(a.shape[::-1], a.dtype)
    return np.linalg.pinv(a, rcond)


def _pinv_scratch(s):
    # k is the smaller size; the sum of both bounds it from above without a comparison.
    k = s["m"] + s["n"]
    values = s["m"] * k + k * s["n"] + k
    return s["m"] * s["n"] * 16 + work_bytes(s["m"], s["n"], k) * 2 + 40 * k + 256 + values * 16


def _pinv_cost(s):
    return s["m"] * s["n"] * (s["m"] * 50 + s["n"] * 50 + 50_000) + 100_000


@kernel("pinv", _pinv, scratch=_pinv_scratch, errors=[NO_CONVERGENCE], flags="contract", cost=_pinv_cost)
def pinv(a, rcond, out, scratch, m, n):
    k = min(m, n)
    rest = scratch[m * n * 16 + work_bytes(m, n, k) * 2 + 8 * k * 4 + 256 :]
    u = view(rest, type_of(a))
    vh = u[m * k :]
    s = view(view(vh[k * n :], "u8"), type_of(a).real)
    if decompose("S", a, u, s, vh, scratch, m, n, k, k, k) != 0:
        return 1
    for i in range(n * m):
        out[i] = 0.0
    for l in range(k):  # noqa: E741
        if s[l] > rcond[0] * s[0]:
            for j in range(n):
                f = conj(vh[l * n + j]) / s[l]
                for i in range(m):
                    out[j * m + i] += f * conj(u[i * k + l])
    return 0
