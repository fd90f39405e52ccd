# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms of columns: neighbouring ones are the lanes of vectors, so that nothing is
transposed.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.fourier import factors_of
from graphc.library.fourier.lanes import put_number
from graphc.library.fourier.stages import im_of, re_of, stages
from graphc.native.builtins import local, put, row, type_of, view

# Columns in one part of a matrix.
COLUMNS = 16


def _columns(attributes, x, table):
    if attributes["inverse"]:
        return np.fft.ifft(x, axis=-2, norm="forward")
    return np.fft.fft(x, axis=-2)


def _work(sizes):
    # 4 planes of as many lanes as a cache line has complex numbers.
    return sizes["n"] * 128 + 4096


def _cost(sizes):
    return sizes["b"] * sizes["n"] * sizes["c"] * 2500


def parts_of_matrix(c):
    return (c + COLUMNS - 1) // COLUMNS


def columns_parts(b, c):
    return b * parts_of_matrix(c)


@kernel("fft_columns", _columns, scratch=_work, flags="contract", cost=_cost, parts=columns_parts)
def fft_columns(x, table, out, scratch, n, c, part, *, inverse, radices):
    kind = type_of(x).real
    parts = parts_of_matrix(c)
    at = part // parts * n * c * 2
    first = part % parts * COLUMNS
    last = min(c, first + COLUMNS)
    have, want, work = view(x, kind), view(out, kind), view(scratch, kind)
    columns_of_matrix(
        have[at:], table, want[at:], work, first, last, n, c, 8 if kind.bits == 32 else 4, inverse, radices
    )


def columns_of_matrix(x, table, out, work, first, last, n, c, w, inverse, radices):
    factors = local(64, "i64")
    count = factors_of(n, factors)
    # Planes are apart by more than a power of two, so that they do not share lines of the cache.
    far = w * n + 40
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    odd = count % 2 == 1
    zr = ar if odd else br
    zi = ai if odd else bi
    for at in range(first, last, w):
        if at + w <= last:
            take_columns(x[2 * at :], zr, zi, n, c, w, 2 if inverse else 1, True, 0)
        else:
            take_columns(x[2 * at :], zr, zi, n, c, w, 2 if inverse else 1, False, 2 * (last - at))
        stages(ar, ai, br, bi, table, factors, count, n, w, w, True, radices)
        if at + w <= last:
            for k in range(n):
                put_number(
                    out[2 * (c * k + at) :],
                    out,
                    0,
                    row(br, w * k, w),
                    row(bi, w * k, w),
                    w,
                    2 if inverse else 1,
                )
        else:
            for k in range(n):
                for i in range(last - at):
                    to = 2 * (c * k + at + i)
                    put_number(
                        out[to:], out, 0, row(br, w * k + i, 1), row(bi, w * k + i, 1), 1, 2 if inverse else 1
                    )


def take_columns(x, zr, zi, n, c, w, packed, whole, left):
    """w columns, or `left` / 2 of them, to planes."""
    some = None if whole else left
    more = None if whole else left - w
    for k in range(n):
        a, b = row(x, 2 * c * k, w, some), row(x, 2 * c * k + w, w, more)
        put(zr, w * k, re_of(a, b, packed))
        put(zi, w * k, im_of(a, b, packed))
