# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bluestein's algorithm for sizes with large prime factors.

Source: L. Bluestein, A linear filtering approach to the computation of the discrete Fourier transform (1970).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import cast, local, type_of
from graphc.kernels.fourier_lanes import transform_row
from graphc.kernels.fourier_plan import (
    chirp_numbers,
    factors_of,
    power_above,
)
from graphc.kernels.fourier_real import join, split
from graphc.kernels.fourier_rows import APART, end_of_row


def end_of_chirp(n, w):
    """Numbers in the table of `fill_chirp`."""
    m = power_above(n)
    factors = local(64, "i64")
    return chirp_numbers(n) + end_of_row(factors, factors_of(m // w, factors), m, w)


def chirp_row(x, xi, y, yi, work, table, n, wanted, w, packed, into, radices):
    """The transform of n numbers as a convolution with the chirp; `wanted` of them are stored.

    Args:
        x, xi: planes (`packed` 0), neighbours, those exchanged (2), or real numbers (3).
        y, yi: likewise by `into`; 3 stores the imaginary parts only.
    """
    m = power_above(n)
    far = m + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    factors = local(64, "i64")
    count = factors_of(m // w, factors)
    zr = ar if count % 2 == 1 else br
    zi = ai if count % 2 == 1 else bi
    for k in range(n):
        u, v = table[2 * k], table[2 * k + 1]
        if packed == 3:
            zr[k], zi[k] = x[k] * u, x[k] * v
        else:
            a = x[k] if packed == 0 else x[2 * k + packed - 1]
            b = xi[k] if packed == 0 else x[2 * k + 2 - packed]
            zr[k], zi[k] = a * u - b * v, a * v + b * u
    for k in range(n, m):
        zr[k], zi[k] = 0, 0
    tr, ti, t = table[2 * n :], table[2 * n + m :], table[chirp_numbers(n) :]
    transform_row(x, ar, ai, br, bi, ar, ai, t, factors, count, m, w, 0, 0, radices)
    for k in range(m):
        a, b = ar[k], ai[k]
        zr[k], zi[k] = a * tr[k] - b * ti[k], a * ti[k] + b * tr[k]
    transform_row(x, ai, ar, bi, br, ai, ar, t, factors, count, m, w, 0, 0, radices)
    scale = cast(1.0 / m, type_of(x))
    for k in range(wanted):
        u, v = table[2 * k] * scale, table[2 * k + 1] * scale
        a, b = ar[k] * u - ai[k] * v, ar[k] * v + ai[k] * u
        if into == 0:
            y[k], yi[k] = a, b
        elif into == 3:
            y[k] = b
        else:
            y[2 * k + into - 1], y[2 * k + 2 - into] = a, b


def chirp_of_reals(x, out, table, work, n, k, w, radices):
    if n % 2 == 1:
        chirp_row(x, x, out, out, work, table, n, k, w, 3, 1, radices)
    else:
        half = n // 2
        m = power_above(half)
        zr, zi = work[4 * (m + APART) :], work[4 * (m + APART) + half :]
        chirp_row(x, x, zr, zi, work, table, half, half, w, 1, 0, radices)
        split(zr, zi, out, out, table[end_of_chirp(half, w) :], half, w, 1, 1)


def chirp_to_reals(x, out, table, work, n, k, w, radices):
    """The imaginary parts of the first number, and of the last of an even n, do not count."""
    if n % 2 == 1:
        m = power_above(n)
        zr, zi = work[4 * (m + APART) :], work[4 * (m + APART) + n :]
        zr[0], zi[0] = x[0], 0
        for j in range(1, k):
            zr[j], zi[j] = x[2 * j], x[2 * j + 1]
            zr[n - j], zi[n - j] = x[2 * j], -x[2 * j + 1]
        chirp_row(zi, zr, out, out, work, table, n, n, w, 0, 3, radices)
    else:
        half = n // 2
        m = power_above(half)
        zr, zi = work[4 * (m + APART) :], work[4 * (m + APART) + half :]
        join(x, x, zr, zi, table[end_of_chirp(half, w) :], half, w, 1, 1)
        chirp_row(zi, zr, out, out, work, table, half, half, w, 0, 2, radices)
