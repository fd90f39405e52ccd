# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of rows of any size.

Bluestein's algorithm for sizes with large prime factors.

Source: L. Bluestein, A linear filtering approach to the computation of the discrete Fourier transform (1970).
"""

# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.lanes import from_lanes, stage_numbers, to_lanes, transform_row
from graphc.library.fourier.plan import (
    ALONE,
    ANY,
    CHIRP,
    LANES,
    ODD,
    ROW_4,
    ROW_8,
    chirp_numbers,
    complex_mode,
    factors_of,
    power_above,
    real_mode,
)
from graphc.library.fourier.real import (
    APART,
    inverse_odd,
    numbers_of_turns,
    rows_in_lanes,
    transform_odd,
    untangle,
)
from graphc.library.fourier.stages import stages
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


def transform_rows(x, table, out, work, first, last, n, k, real, inverse, mode, radices, wide):
    """Rows from `first` to `last`.

    Args:
        x, out: complex numbers as neighbours; with `real`, x or, of the inverse, out are real.
        n, k: size of the transform, and how many frequencies there are of real numbers.
        mode: how (see `graphc.library.fourier.plan`); ANY is found out here.
        wide: lanes of the widest vectors.
    """
    found = mode
    if mode == ANY:
        found = real_mode(n, wide) if real else complex_mode(n, wide)
    if mode == ALONE:
        alone(x, table, out, work, n, wide, inverse, radices)
    elif mode == LANES or (mode == ANY and found == LANES):
        side_by_side(x, table, out, work, first, last, n, k, wide, real, inverse, radices)
    elif real and (mode == ODD or (mode == ANY and found == ODD)):
        odd_side_by_side(x, table, out, work, first, last, n, k, wide, inverse, radices)
    elif mode == CHIRP or (mode == ANY and found == CHIRP):
        for at in range(first, last):
            if not real:
                chirp_of_complex(x[2 * at * n :], out[2 * at * n :], table, work, n, wide, inverse, radices)
            elif inverse:
                chirp_of_reals(x[2 * at * k :], out[at * n :], table, work, n, k, wide, True, radices)
            else:
                chirp_of_reals(x[at * n :], out[2 * at * k :], table, work, n, k, wide, False, radices)
    elif mode == ANY:
        if wide == 8 and found == ROW_8:
            rows_in_lanes(x, table, out, work, first, last, n, k, 8, real, inverse, True, radices)
        elif found == ROW_4:
            rows_in_lanes(x, table, out, work, first, last, n, k, 4, real, inverse, True, radices)


def alone(x, table, out, work, n, w, inverse, radices):
    """One row of which the size is no multiple of the lanes."""
    factors = local(64, "i64")
    count = factors_of(n, factors)
    ar, ai, br, bi = work, work[n:], work[2 * n :], work[3 * n :]
    odd = count % 2 == 1
    zr, zi = ar if odd else br, ai if odd else bi
    for k in range(n):
        zr[k], zi[k] = x[2 * k], x[2 * k + 1]
    if inverse:
        stages(ai, ar, bi, br, table, factors, count, n, 1, w, False, radices)
    else:
        stages(ar, ai, br, bi, table, factors, count, n, 1, w, False, radices)
    for k in range(n):
        out[2 * k], out[2 * k + 1] = br[k], bi[k]


def side_by_side(x, table, out, work, first, last, n, k, w, real, inverse, radices):
    """As many rows as a vector has lanes, each in one of them; real numbers are transformed in pairs."""
    size = n // 2 if real else n
    factors = local(64, "i64")
    count = factors_of(size, factors)
    far = w * (size + 1)
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    zr, zi = ar if odd else br, ai if odd else bi
    # A variable, as where else there are stages: one routine does for all.
    series = w
    ends = table[2 * stage_numbers(factors, count, size) :] if real else table
    for at in range(first, last, w):
        have = min(w, last - at)
        if real and inverse:
            yr, yi = work[4 * far :], work[5 * far :]
            to_lanes(x[2 * k * at :], 2 * k, have, 2 * k, yr, yi, True, w)
            untangle(yr, yi, zr, zi, ends, size, w, w, 0, True)
        else:
            to_lanes(x[2 * size * at :], 2 * size, have, 2 * size, zr, zi, True, w)
        if inverse:
            stages(ai, ar, bi, br, table, factors, count, size, series, w, True, radices)
        else:
            stages(ar, ai, br, bi, table, factors, count, size, series, w, True, radices)
        if real and not inverse:
            untangle(br, bi, ar, ai, ends, size, w, w, 0, False)
            from_lanes(ar, ai, out[2 * k * at :], 2 * k, have, 2 * k, True, w)
        else:
            from_lanes(br, bi, out[2 * size * at :], 2 * size, have, 2 * size, True, w)


def odd_side_by_side(x, table, out, work, first, last, n, k, w, inverse, radices):
    """Likewise of an odd number of reals."""
    size, part = w * n, w * k
    other, ar, ai = work[size:], work[2 * size :], work[2 * size + part :]
    br, bi, zr, zi = ar[2 * part :], ar[3 * part :], ar[4 * part :], ar[5 * part :]
    for at in range(first, last, w):
        have = min(w, last - at)
        if inverse:
            to_lanes(x[2 * k * at :], 2 * k, have, 2 * k, zr, zi, True, w)
            inverse_odd(zr, zi, work, other, ar, ai, br, bi, table, n, w, radices)
            from_lanes(work, work, out[n * at :], n, have, n, False, w)
        else:
            to_lanes(x[n * at :], n, have, n, work, work, False, w)
            transform_odd(work, other, ar, ai, br, bi, zr, zi, table, n, w, radices)
            from_lanes(zr, zi, out[2 * k * at :], 2 * k, have, 2 * k, True, w)
