# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bluestein's algorithm for sizes with large prime factors.

Source: L. Bluestein, A linear filtering approach to the computation of the discrete Fourier transform (1970).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.lanes import stage_numbers, transform_row
from graphc.library.fourier.plan import (
    chirp_numbers,
    factors_of,
    power_above,
)
from graphc.library.fourier.real import untangle
from graphc.library.fourier.rows import APART, numbers_of_turns
from graphc.native.builtins import apart, cast, local, type_of


def end_of_chirp(n, w):
    """Numbers in the table of `fill_chirp`."""
    m = power_above(n)
    factors = local(64, "i64")
    count = factors_of(m // w, factors)
    return chirp_numbers(n) + 2 * stage_numbers(factors, count, m // w) + numbers_of_turns(m, w)


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
    odd = count % 2 == 1
    zr, zi = ar if odd else br, ai if odd else bi
    for k in range(n):
        u, v = table[2 * k], table[2 * k + 1]
        if packed == 3:
            zr[k], zi[k] = x[k] * u, x[k] * v
        else:
            a = x[k] if packed == 0 else x[2 * k + packed - 1]
            b = xi[k] if packed == 0 else x[2 * k + 2 - packed]
            zr[k], zi[k] = a * u - b * v, a * v + b * u
    convolve(x, zr, zi, ar, ai, br, bi, table, factors, count, n, m, w, radices)
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


@apart
def convolve(x, zr, zi, ar, ai, br, bi, table, factors, count, n, m, w, radices):
    """m numbers, of which n are not 0, from z, where the transform begins, to a, with the parts exchanged."""
    for k in range(n, m):
        zr[k], zi[k] = 0, 0
    tr, ti, t = table[2 * n :], table[2 * n + m :], table[chirp_numbers(n) :]
    turns = t[2 * stage_numbers(factors, count, m // w) :]
    transform_row(x, ar, ai, br, bi, ar, ai, t, turns, factors, count, m, w, 0, 0, radices)
    for k in range(m):
        a, b = ar[k], ai[k]
        zr[k], zi[k] = a * tr[k] - b * ti[k], a * ti[k] + b * tr[k]
    transform_row(x, ai, ar, bi, br, ai, ar, t, turns, factors, count, m, w, 0, 0, radices)


def chirp_of_complex(x, out, table, work, n, w, inverse, radices):
    chirp_row(x, x, out, out, work, table, n, n, w, 2 if inverse else 1, 2 if inverse else 1, radices)


def chirp_of_reals(x, out, table, work, n, k, w, inverse, radices):
    """Real numbers to k frequencies, or back: then the imaginary parts of the first one, and of the last one
    of an even n, do not count.
    """
    size = n // 2 if n % 2 == 0 else n
    m = power_above(size)
    zr, zi = work[4 * (m + APART) :], work[4 * (m + APART) + size :]
    ends = table[end_of_chirp(size, w) :] if n % 2 == 0 else table
    if n % 2 == 0 and inverse:
        untangle(x, x, zr, zi, ends, size, w, 1, 1, True)
        chirp_row(zi, zr, out, out, work, table, size, size, w, 0, 2, radices)
    elif n % 2 == 0:
        chirp_row(x, x, zr, zi, work, table, size, size, w, 1, 0, radices)
        untangle(zr, zi, out, out, ends, size, w, 1, 1, False)
    elif inverse:
        zr[0], zi[0] = x[0], 0
        for j in range(1, k):
            zr[j], zi[j] = x[2 * j], x[2 * j + 1]
            zr[n - j], zi[n - j] = x[2 * j], -x[2 * j + 1]
        chirp_row(zi, zr, out, out, work, table, n, n, w, 0, 3, radices)
    else:
        chirp_row(x, x, out, out, work, table, n, k, w, 3, 1, radices)
