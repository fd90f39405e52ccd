# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of rows whose numbers are in the lanes of vectors (see `graphc.kernels.fourier_lanes`)."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import local
from graphc.kernels.fourier_lanes import pack, stage_numbers, transform_row, unpack
from graphc.kernels.fourier_plan import (
    factors_of,
)
from graphc.kernels.fourier_real import join, split

# Numbers between planes, whose sizes are often powers of two: so that they do not share lines of the cache.
APART = 40


def rows_of_complex(x, table, out, work, first, last, n, w, inverse, plain, radices):
    """Rows one after the other. With `plain` from planes to planes, which takes less code."""
    factors = local(64, "i64")
    count = factors_of(n // w, factors)
    far = n + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    for at in range(first, last):
        have, want = x[2 * at * n :], out[2 * at * n :]
        if plain:
            unpack(have, have[w:], ar if odd else br, ai if odd else bi, n, w, 2 if inverse else 1)
            transform_row(x, ar, ai, br, bi, ar, ai, table, factors, count, n, w, 0, 0, radices)
            pack(ar, ai, want, n, w, 2 if inverse else 1)
        elif inverse:
            transform_row(have, ar, ai, br, bi, want, out, table, factors, count, n, w, 2, 2, radices)
        else:
            transform_row(have, ar, ai, br, bi, want, out, table, factors, count, n, w, 1, 1, radices)


def rows_of_reals(x, table, out, work, first, last, n, k, w, plain, radices):
    """Rows of an even number: those at even and odd places are real and imaginary parts."""
    half = n // 2
    factors = local(64, "i64")
    count = factors_of(half // w, factors)
    far = half + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    ends = table[end_of_row(factors, count, half, w) :]
    for at in range(first, last):
        have = x[at * n :]
        if plain:
            unpack(have, have[w:], ar if odd else br, ai if odd else bi, half, w, 1)
            transform_row(x, ar, ai, br, bi, ar, ai, table, factors, count, half, w, 0, 0, radices)
        else:
            transform_row(have, ar, ai, br, bi, ar, ai, table, factors, count, half, w, 1, 0, radices)
        split(ar, ai, out[2 * at * k :], out, ends, half, w, 1, 1)


def rows_to_reals(x, table, out, work, first, last, n, k, w, plain, radices):
    half = n // 2
    factors = local(64, "i64")
    count = factors_of(half // w, factors)
    far = half + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    zr = ar if odd else br
    zi = ai if odd else bi
    ends = table[end_of_row(factors, count, half, w) :]
    for at in range(first, last):
        join(x[2 * at * k :], x, zr, zi, ends, half, w, 1, 1)
        want = out[at * n :]
        if plain:
            transform_row(x, ai, ar, bi, br, ai, ar, table, factors, count, half, w, 0, 0, radices)
            pack(ar, ai, want, half, w, 1)
        else:
            transform_row(x, ai, ar, bi, br, want, out, table, factors, count, half, w, 0, 2, radices)


def end_of_row(factors, count, n, w):
    """Numbers in the table of `fill_row`."""
    return 2 * stage_numbers(factors, count, n // w) + 2 * (n // w) * (w - 1)
