# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms: Stockham's algorithm with radices 4, 2, 3, 5 and any other small one,
Bluestein's for sizes with large prime factors, and real transforms by complex ones of half the size.

Complex numbers are pairs of reals here, which LLVM's vectoriser understands. `table` has exp(-2 pi i k / n).

Sources: T. G. Stockham, High-speed convolution and correlation (1966); L. Bluestein, A linear filtering
approach to the computation of the discrete Fourier transform (1970).
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.kernels import kernel
from graphc.kernels.builtins import call, cast, type_of, view
from graphc.kernels.fourier_stages import count_stages, stages_of

PI = np.pi
# Numbers in one part of the rows, and rows in one part of those that need tables of their own, at least.
ELEMENTS, TABLES = 1024, 16


def _fft(attributes, x, table):
    return np.fft.ifft(x, norm="forward") if attributes["inverse"] else np.fft.fft(x)


def _rfft(attributes, x, table, k):
    return np.fft.rfft(x)


def _irfft(attributes, x, table):
    return np.fft.irfft(x, table.shape[-1], norm="forward")


def _table(attributes, x, n):
    return np.broadcast_to(np.exp(-2j * PI * np.arange(int(n)) / max(int(n), 1)), (*x.shape, int(n)))


@kernel("fft_table", _table)
def fft_table(x, out, n):
    roots_of_unity(view(out, type_of(x)), n)


def roots_of_unity(out, n):
    """exp(-2 pi i k / n), from sines and cosines of angles up to pi / 4."""
    for k in range(n):
        # The position in an eighth of the circle: 8 k = octant * n + rest.
        octant = 8 * k // n
        rest = 8 * k - octant * n
        odd = octant % 2 == 1
        angle = (n - rest if odd else rest) * (PI / 4) / n
        c, s = call("cos", angle, returns="double"), call("sin", angle, returns="double")
        quarter = octant // 2
        # In an odd octant the angle is measured back from the end of the quarter.
        re = s if odd else c
        im = c if odd else s
        if quarter % 2 == 1:
            re, im = -im, re
        if quarter >= 2:
            re, im = -re, -im
        out[2 * k] = cast(re, type_of(out))
        out[2 * k + 1] = cast(-im, type_of(out))


# -- sizes with large prime factors --------------------------------------------------------------------------


def power_above(n):
    m = 1
    while m < 2 * n - 1:
        m = 2 * m
    return m


def bluestein_tables(work, n, m, inverse):
    """The chirp, its transform, and the roots of unity of m, behind each other: 2 n, 2 m, 2 m reals."""
    chirp, transformed, roots, spare = work, work[2 * n :], work[2 * (n + m) :], work[2 * (n + 2 * m) :]
    roots_of_unity(roots, 2 * n)
    for k in range(n):
        at = k * k % (2 * n)
        chirp[2 * k] = roots[2 * at]
        chirp[2 * k + 1] = -roots[2 * at + 1] if inverse else roots[2 * at + 1]
    roots_of_unity(roots, m)
    filled = spare[2 * m :]
    for k in range(2 * m):
        filled[k] = 0
    for k in range(n):
        filled[2 * k] = chirp[2 * k]
        filled[2 * k + 1] = -chirp[2 * k + 1]
        if k > 0:
            filled[2 * (m - k)] = chirp[2 * k]
            filled[2 * (m - k) + 1] = -chirp[2 * k + 1]
    stages_of(filled, transformed, spare, roots, m, 1, False, count_stages(m))


def bluestein(x, out, work, n, m):
    """The transform as a convolution with the chirp."""
    chirp, transformed, roots, spare = work, work[2 * n :], work[2 * (n + m) :], work[2 * (n + 2 * m) :]
    filled, result = spare[2 * m :], spare[4 * m :]
    for k in range(n):
        re, im, u, v = x[2 * k], x[2 * k + 1], chirp[2 * k], chirp[2 * k + 1]
        filled[2 * k] = re * u - im * v
        filled[2 * k + 1] = re * v + im * u
    for k in range(2 * n, 2 * m):
        filled[k] = 0
    stages = count_stages(m)
    stages_of(filled, result, spare, roots, m, 1, False, stages)
    for k in range(m):
        re, im, u, v = result[2 * k], result[2 * k + 1], transformed[2 * k], transformed[2 * k + 1]
        result[2 * k] = re * u - im * v
        result[2 * k + 1] = re * v + im * u
    stages_of(result, filled, spare, roots, m, 1, True, stages)
    scale = cast(1.0 / m, type_of(x))
    for k in range(n):
        re, im, u, v = filled[2 * k] * scale, filled[2 * k + 1] * scale, chirp[2 * k], chirp[2 * k + 1]
        out[2 * k] = re * u - im * v
        out[2 * k + 1] = re * v + im * u


# -- kernels -------------------------------------------------------------------------------------------------


def _work(sizes):
    return sizes["n"] * 16 + 64


def _work_any(sizes):
    # Five arrays of a power of two below 4 n, and the chirp; double precision.
    return sizes["n"] * (22 * 16) + 1024


def _cost(sizes):
    return sizes["b"] * sizes["n"] * 2500


def _cost_any(sizes):
    return sizes["b"] * sizes["n"] * 8000


def rows_of_part(b, n):
    """Rows that one core does at a time."""
    return max(1, ELEMENTS // max(n, 1))


def rows_of_part_any(b, n):
    """The same with enough rows for the tables that Bluestein's algorithm needs."""
    few = rows_of_part(b, n)
    return few if count_stages(n) >= 0 else max(few, max(TABLES, (b + TABLES - 1) // TABLES))


def fft_parts(b, n, *, inverse):
    rows = rows_of_part(b, n)
    return (b + rows - 1) // rows


def fft_any_parts(b, n, *, inverse):
    rows = rows_of_part_any(b, n)
    return (b + rows - 1) // rows


def rfft_parts(b, n, k):
    rows = rows_of_part(b, n)
    return (b + rows - 1) // rows


def irfft_parts(b, k, n):
    rows = rows_of_part(b, n)
    return (b + rows - 1) // rows


@kernel("fft", _fft, scratch=_work, flags="contract", cost=_cost, parts=fft_parts)
def fft(x, table, out, scratch, b, n, part, *, inverse):
    kind = type_of(x).real
    have, want, work, roots = view(x, kind), view(out, kind), view(scratch, kind), view(table, kind)
    stages = count_stages(n)
    rows = rows_of_part(b, n)
    first = part * rows
    for row in range(first, min(b, first + rows)):
        stages_of(have[2 * row * n :], want[2 * row * n :], work, roots, n, 1, inverse, stages)


@kernel("fft_any", _fft, scratch=_work_any, flags="contract", cost=_cost_any, parts=fft_any_parts)
def fft_any(x, table, out, scratch, b, n, part, *, inverse):
    kind = type_of(x).real
    have, want, work, roots = view(x, kind), view(out, kind), view(scratch, kind), view(table, kind)
    stages = count_stages(n)
    rows = rows_of_part_any(b, n)
    first = part * rows
    if stages >= 0:
        for row in range(first, min(b, first + rows)):
            stages_of(have[2 * row * n :], want[2 * row * n :], work, roots, n, 1, inverse, stages)
    else:
        m = power_above(n)
        bluestein_tables(work, n, m, inverse)
        for row in range(first, min(b, first + rows)):
            bluestein(have[2 * row * n :], want[2 * row * n :], work, n, m)


@kernel("rfft", _rfft, scratch=_work, flags="contract", cost=_cost, parts=rfft_parts)
def rfft(x, table, out, scratch, b, n, k, part):
    kind = type_of(x)
    want, work, roots = view(out, kind), view(scratch, kind), view(table, kind)
    half = n // 2
    stages = count_stages(half)
    rows = rows_of_part(b, n)
    first = part * rows
    for row in range(first, min(b, first + rows)):
        # The numbers at even and odd positions as real and imaginary parts.
        stages_of(x[row * n :], work[n:], work, roots, half, 2, False, stages)
        split(work[n:], roots, want[2 * row * k :], half)


def split(z, roots, out, half):
    """The transform of 2 * half reals from that of the even ones plus i times the odd ones."""
    if half == 0:
        return
    out[0], out[1] = z[0] + z[1], 0.0
    out[2 * half], out[2 * half + 1] = z[0] - z[1], 0.0
    for k in range(1, half):
        o = half - k
        er, ei = 0.5 * (z[2 * k] + z[2 * o]), 0.5 * (z[2 * k + 1] - z[2 * o + 1])
        dr, di = 0.5 * (z[2 * k + 1] + z[2 * o + 1]), 0.5 * (z[2 * o] - z[2 * k])
        u, v = roots[2 * k], roots[2 * k + 1]
        out[2 * k] = er + (dr * u - di * v)
        out[2 * k + 1] = ei + (dr * v + di * u)


@kernel("irfft", _irfft, scratch=_work, flags="contract", cost=_cost, parts=irfft_parts)
def irfft(x, table, out, scratch, b, k, n, part):
    kind = type_of(out)
    have, work, roots = view(x, kind), view(scratch, kind), view(table, kind)
    half = n // 2
    stages = count_stages(half)
    rows = rows_of_part(b, n)
    first = part * rows
    for row in range(first, min(b, first + rows)):
        join(have[2 * row * k :], roots, work[n:], half)
        stages_of(work[n:], out[row * n :], work, roots, half, 2, True, stages)


def join(x, roots, z, half):
    """The inverse of `split`, times 2. The imaginary parts of the first and the last number do not count."""
    if half == 0:
        return
    z[0], z[1] = x[0] + x[2 * half], x[0] - x[2 * half]
    for k in range(1, half):
        o = half - k
        er, ei = x[2 * k] + x[2 * o], x[2 * k + 1] - x[2 * o + 1]
        dr, di = x[2 * k] - x[2 * o], x[2 * k + 1] + x[2 * o + 1]
        u, v = roots[2 * k], -roots[2 * k + 1]
        z[2 * k] = er - (dr * v + di * u)
        z[2 * k + 1] = ei + (dr * u - di * v)
