# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of rows of any size."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import local
from graphc.kernels.fourier_chirp import chirp_of_reals, chirp_row, chirp_to_reals
from graphc.kernels.fourier_lanes import from_lanes, stage_numbers, to_lanes
from graphc.kernels.fourier_plan import (
    ALONE,
    ANY,
    CHIRP,
    LANES,
    ODD,
    ROW_4,
    ROW_8,
    complex_mode,
    factors_of,
    real_mode,
)
from graphc.kernels.fourier_real import inverse_odd, join, split, transform_odd
from graphc.kernels.fourier_rows import rows_of_complex, rows_of_reals, rows_to_reals
from graphc.kernels.fourier_stages import stages


def fft_rows(have, table, want, work, first, last, n, inverse, mode, radices, wide):
    chosen = complex_mode(n, wide) if mode == ANY else mode
    if mode == ALONE:
        alone(have, table, want, work, n, wide, inverse, radices)
    elif mode == LANES or (mode == ANY and chosen == LANES):
        complex_lanes(have, table, want, work, first, last, n, wide, inverse, radices)
    elif mode == CHIRP or (mode == ANY and chosen == CHIRP):
        for at in range(first, last):
            x_row, out_row = have[2 * at * n :], want[2 * at * n :]
            chirp_row(
                x_row,
                x_row,
                out_row,
                out_row,
                work,
                table,
                n,
                n,
                wide,
                2 if inverse else 1,
                2 if inverse else 1,
                radices,
            )
    elif mode == ANY:
        if wide == 8 and chosen == ROW_8:
            rows_of_complex(have, table, want, work, first, last, n, 8, inverse, True, radices)
        elif chosen == ROW_4:
            rows_of_complex(have, table, want, work, first, last, n, 4, inverse, True, radices)


def alone(x, table, out, work, n, w, inverse, radices):
    """One row of which the size is no multiple of the lanes."""
    factors = local(64, "i64")
    count = factors_of(n, factors)
    ar, ai, br, bi = work, work[n:], work[2 * n :], work[3 * n :]
    odd = count % 2 == 1
    zr = ar if odd else br
    zi = ai if odd else bi
    for k in range(n):
        zr[k], zi[k] = x[2 * k], x[2 * k + 1]
    if inverse:
        stages(ai, ar, bi, br, table, factors, 0, count, n, 1, w, False, radices)
    else:
        stages(ar, ai, br, bi, table, factors, 0, count, n, 1, w, False, radices)
    for k in range(n):
        out[2 * k], out[2 * k + 1] = br[k], bi[k]


def complex_lanes(x, table, out, work, first, last, n, w, inverse, radices):
    factors = local(64, "i64")
    count = factors_of(n, factors)
    ar, ai, br, bi = work, work[w * n :], work[2 * w * n :], work[3 * w * n :]
    odd = count % 2 == 1
    for at in range(first, last, w):
        have = min(w, last - at)
        to_lanes(x[2 * n * at :], 2 * n, have, 2 * n, ar if odd else br, ai if odd else bi, True, w)
        if inverse:
            stages(ai, ar, bi, br, table, factors, 0, count, n, w, w, True, radices)
        else:
            stages(ar, ai, br, bi, table, factors, 0, count, n, w, w, True, radices)
        from_lanes(br, bi, out[2 * n * at :], 2 * n, have, 2 * n, True, w)


def rfft_rows(x, table, want, work, first, last, n, k, mode, radices, wide):
    chosen = real_mode(n, wide) if mode == ANY else mode
    if mode == LANES or (mode == ANY and chosen == LANES):
        reals_in_lanes(x, table, want, work, first, last, n, k, wide, radices)
    elif mode == ODD or (mode == ANY and chosen == ODD):
        odd_in_lanes(x, table, want, work, first, last, n, k, wide, radices)
    elif mode == CHIRP or (mode == ANY and chosen == CHIRP):
        for at in range(first, last):
            chirp_of_reals(x[n * at :], want[2 * k * at :], table, work, n, k, wide, radices)
    elif mode == ANY:
        if wide == 8 and chosen == ROW_8:
            rows_of_reals(x, table, want, work, first, last, n, k, 8, True, radices)
        elif chosen == ROW_4:
            rows_of_reals(x, table, want, work, first, last, n, k, 4, True, radices)


def reals_in_lanes(x, table, out, work, first, last, n, k, w, radices):
    half = n // 2
    factors = local(64, "i64")
    count = factors_of(half, factors)
    size = w * (half + 1)
    ar, ai, br, bi = work, work[size:], work[2 * size :], work[3 * size :]
    odd = count % 2 == 1
    ends = table[2 * stage_numbers(factors, count, half) :]
    for at in range(first, last, w):
        have = min(w, last - at)
        to_lanes(x[n * at :], n, have, n, ar if odd else br, ai if odd else bi, True, w)
        stages(ar, ai, br, bi, table, factors, 0, count, half, w, w, True, radices)
        split(br, bi, ar, ai, ends, half, w, w, 0)
        from_lanes(ar, ai, out[2 * k * at :], 2 * k, have, 2 * k, True, w)


def odd_in_lanes(x, table, out, work, first, last, n, k, w, radices):
    size = w * n
    part = w * k
    other, ar, ai = work[size:], work[2 * size :], work[2 * size + part :]
    br, bi, yr, yi = ar[2 * part :], ar[3 * part :], ar[4 * part :], ar[5 * part :]
    for at in range(first, last, w):
        have = min(w, last - at)
        to_lanes(x[n * at :], n, have, n, work, work, False, w)
        transform_odd(work, other, ar, ai, br, bi, yr, yi, table, n, w, radices)
        from_lanes(yr, yi, out[2 * k * at :], 2 * k, have, 2 * k, True, w)


def irfft_rows(have, table, out, work, first, last, n, k, mode, radices, wide):
    chosen = real_mode(n, wide) if mode == ANY else mode
    if mode == LANES or (mode == ANY and chosen == LANES):
        lanes_to_reals(have, table, out, work, first, last, n, k, wide, radices)
    elif mode == ODD or (mode == ANY and chosen == ODD):
        lanes_to_odd(have, table, out, work, first, last, n, k, wide, radices)
    elif mode == CHIRP or (mode == ANY and chosen == CHIRP):
        for at in range(first, last):
            chirp_to_reals(have[2 * k * at :], out[n * at :], table, work, n, k, wide, radices)
    elif mode == ANY:
        if wide == 8 and chosen == ROW_8:
            rows_to_reals(have, table, out, work, first, last, n, k, 8, True, radices)
        elif chosen == ROW_4:
            rows_to_reals(have, table, out, work, first, last, n, k, 4, True, radices)


def lanes_to_reals(x, table, out, work, first, last, n, k, w, radices):
    half = n // 2
    factors = local(64, "i64")
    count = factors_of(half, factors)
    size = w * (half + 1)
    ar, ai, br, bi = work, work[size:], work[2 * size :], work[3 * size :]
    yr, yi = work[4 * size :], work[5 * size :]
    odd = count % 2 == 1
    ends = table[2 * stage_numbers(factors, count, half) :]
    for at in range(first, last, w):
        have = min(w, last - at)
        to_lanes(x[2 * k * at :], 2 * k, have, 2 * k, yr, yi, True, w)
        join(yr, yi, ar if odd else br, ai if odd else bi, ends, half, w, w, 0)
        stages(ai, ar, bi, br, table, factors, 0, count, half, w, w, True, radices)
        from_lanes(br, bi, out[n * at :], n, have, n, True, w)


def lanes_to_odd(x, table, out, work, first, last, n, k, w, radices):
    size = w * n
    part = w * k
    other, ar, ai = work[size:], work[2 * size :], work[2 * size + part :]
    br, bi, xr, xi = ar[2 * part :], ar[3 * part :], ar[4 * part :], ar[5 * part :]
    for at in range(first, last, w):
        have = min(w, last - at)
        to_lanes(x[2 * k * at :], 2 * k, have, 2 * k, xr, xi, True, w)
        inverse_odd(xr, xi, work, other, ar, ai, br, bi, table, n, w, radices)
        from_lanes(work, work, out[n * at :], n, have, n, False, w)
