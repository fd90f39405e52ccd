# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of rows whose numbers are in the lanes of vectors (see `graphc.library.fourier.lanes`)."""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.lanes import pack, stage_numbers, transform_row, unpack
from graphc.library.fourier.plan import factors_of
from graphc.library.fourier.real import untangle
from graphc.native.builtins import local

# Numbers between planes, whose sizes are often powers of two: so that they do not share lines of the cache.
APART = 40


def rows_in_lanes(x, table, out, work, first, last, n, k, w, real, inverse, plain, radices):
    """Rows one after the other.

    Args:
        x, out: as neighbours; real numbers are one of them.
        n, k: size of the transform, and how many frequencies there are of real numbers.
        real: one side is real; its numbers at even and odd places are real and imaginary parts of half as
            many.
        plain: from planes to planes, which takes less code.
    """
    size = n // 2 if real else n
    factors = local(64, "i64")
    count = factors_of(size // w, factors)
    far = size + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    zr, zi = ar if odd else br, ai if odd else bi
    turns = table[2 * stage_numbers(factors, count, size // w) :]
    ends = turns[numbers_of_turns(size, w) :]
    for at in range(first, last):
        if real and inverse:
            want = out[at * n :]
            untangle(x[2 * at * k :], x, zr, zi, ends, size, w, 1, 1, True)
            if plain:
                transform_row(x, ai, ar, bi, br, ai, ar, table, turns, factors, count, size, w, 0, 0, radices)
                pack(ar, ai, want, size, w, 1)
            else:
                transform_row(
                    x, ai, ar, bi, br, want, out, table, turns, factors, count, size, w, 0, 2, radices
                )
        else:
            have, want = x[2 * at * size :], out[2 * at * (k if real else n) :]
            if plain:
                unpack(have, have[w:], zr, zi, size, w, 2 if inverse else 1)
                transform_row(x, ar, ai, br, bi, ar, ai, table, turns, factors, count, size, w, 0, 0, radices)
                if not real:
                    pack(ar, ai, want, size, w, 2 if inverse else 1)
            elif real:
                transform_row(
                    have, ar, ai, br, bi, ar, ai, table, turns, factors, count, size, w, 1, 0, radices
                )
            elif inverse:
                transform_row(
                    have, ar, ai, br, bi, want, out, table, turns, factors, count, size, w, 2, 2, radices
                )
            else:
                transform_row(
                    have, ar, ai, br, bi, want, out, table, turns, factors, count, size, w, 1, 1, radices
                )
            if real:
                untangle(ar, ai, want, out, ends, size, w, 1, 1, False)


def numbers_of_turns(n, w):
    """Numbers in the table of `fill_row` after those of the stages."""
    return 2 * (n // w) * (w - 1)
