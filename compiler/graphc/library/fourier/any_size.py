# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of rows of any size."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.chirp import chirp_of_complex, chirp_of_reals
from graphc.library.fourier.lanes import from_lanes, stage_numbers, to_lanes
from graphc.library.fourier.plan import (
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
from graphc.library.fourier.real import inverse_odd, transform_odd, untangle
from graphc.library.fourier.rows import rows_in_lanes
from graphc.library.fourier.stages import stages
from graphc.native.builtins import local


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
