# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms of rows: Stockham's algorithm, and Bluestein's for sizes with large prime
factors. The table that each reads is that of `fourier_plan.fill_table`.

Source: T. G. Stockham, High-speed convolution and correlation (1966).
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library.fourier.any_size import transform_rows
from graphc.library.fourier.real import rows_in_lanes
from graphc.library.registry import kernel
from graphc.native.builtins import type_of, view

# Numbers in one part of the rows, and rows in one part of those that a lane each has, at least.
ELEMENTS, SIDE_BY_SIDE = 2048, 8
_EMPTY = [("ValueError", "invalid number of data points (0) specified; it must be at least 1")]


def _fft(attributes, x, table):
    return np.fft.ifft(x, norm="forward") if attributes["inverse"] else np.fft.fft(x)


def _rfft(attributes, x, table, k):
    return np.fft.rfft(x)


def _irfft(attributes, x, table, n):
    return np.fft.irfft(x, int(n), norm="forward")


# -- kernels -------------------------------------------------------------------------------------------------


def _work(sizes):
    return sizes["n"] * 32 + 2048


def _work_real(sizes):
    return sizes["n"] * 16 + 2048


def _work_any(sizes):
    # Bluestein's algorithm: 4 planes of a power of two below 4 n; or 5 planes of 4 lanes; double precision.
    return sizes["n"] * 192 + 8192


def _cost(sizes):
    return sizes["b"] * sizes["n"] * 2500


def _cost_any(sizes):
    return sizes["b"] * sizes["n"] * 5000


def rows_of_part(n):
    """Rows that one core does at a time."""
    return max(1, ELEMENTS // max(n, 1) // SIDE_BY_SIDE) * SIDE_BY_SIDE if n < ELEMENTS else 1


def rows_of_part_any(n):
    return max(1, ELEMENTS // max(n, 1) // SIDE_BY_SIDE) * SIDE_BY_SIDE


def fft_parts(b, n, t, *, inverse, mode, radices):
    return (b + rows_of_part(n) - 1) // rows_of_part(n)


def fft_any_parts(b, n, t, *, inverse, mode, radices):
    return (b + rows_of_part_any(n) - 1) // rows_of_part_any(n)


def rfft_parts(b, n, t, k, *, mode, radices):
    return (b + rows_of_part(n) - 1) // rows_of_part(n)


def rfft_any_parts(b, n, t, k, *, mode, radices):
    return (b + rows_of_part_any(n) - 1) // rows_of_part_any(n)


def irfft_parts(b, k, t, n, *, mode, radices):
    return (b + rows_of_part(n) - 1) // rows_of_part(n)


def irfft_any_parts(b, k, t, n, *, mode, radices):
    return (b + rows_of_part_any(n) - 1) // rows_of_part_any(n)


@kernel("fft", _fft, scratch=_work, flags="contract", cost=_cost, parts=fft_parts)
def fft(x, table, out, scratch, b, n, t, part, *, inverse, mode, radices):
    kind = type_of(x).real
    first = part * rows_of_part(n)
    last = min(b, first + rows_of_part(n))
    have, want, work = view(x, kind), view(out, kind), view(scratch, kind)
    rows_in_lanes(have, table, want, work, first, last, n, n, mode, False, inverse, False, radices)


@kernel("rfft", _rfft, scratch=_work_real, flags="contract", cost=_cost, parts=rfft_parts)
def rfft(x, table, out, scratch, b, n, t, k, part, *, mode, radices):
    kind = type_of(x)
    first = part * rows_of_part(n)
    last = min(b, first + rows_of_part(n))
    want, work = view(out, kind), view(scratch, kind)
    rows_in_lanes(x, table, want, work, first, last, n, k, mode, True, False, False, radices)


@kernel("irfft", _irfft, scratch=_work_real, flags="contract", cost=_cost, parts=irfft_parts)
def irfft(x, table, out, scratch, b, k, t, n, part, *, mode, radices):
    kind = type_of(out)
    first = part * rows_of_part(n)
    last = min(b, first + rows_of_part(n))
    have, work = view(x, kind), view(scratch, kind)
    rows_in_lanes(have, table, out, work, first, last, n, k, mode, True, True, False, radices)


# -- any size ------------------------------------------------------------------------------------------------


@kernel(
    "fft_any", _fft, scratch=_work_any, errors=_EMPTY, flags="contract", cost=_cost_any, parts=fft_any_parts
)
def fft_any(x, table, out, scratch, b, n, t, part, *, inverse, mode, radices):
    if n < 1:
        return 1
    kind = type_of(x).real
    have, want, work = view(x, kind), view(out, kind), view(scratch, kind)
    first = part * rows_of_part_any(n)
    last = min(b, first + rows_of_part_any(n))
    transform_rows(
        have, table, want, work, first, last, n, n, False, inverse, mode, radices, 256 // kind.bits
    )
    return 0


@kernel(
    "rfft_any",
    _rfft,
    scratch=_work_any,
    errors=_EMPTY,
    flags="contract",
    cost=_cost_any,
    parts=rfft_any_parts,
)
def rfft_any(x, table, out, scratch, b, n, t, k, part, *, mode, radices):
    if n < 1:
        return 1
    kind = type_of(x)
    want, work = view(out, kind), view(scratch, kind)
    first = part * rows_of_part_any(n)
    last = min(b, first + rows_of_part_any(n))
    transform_rows(x, table, want, work, first, last, n, k, True, False, mode, radices, 256 // kind.bits)
    return 0


@kernel(
    "irfft_any",
    _irfft,
    scratch=_work_any,
    errors=_EMPTY,
    flags="contract",
    cost=_cost_any,
    parts=irfft_any_parts,
)
def irfft_any(x, table, out, scratch, b, k, t, n, part, *, mode, radices):
    if n < 1:
        return 1
    kind = type_of(out)
    have, work = view(x, kind), view(scratch, kind)
    first = part * rows_of_part_any(n)
    last = min(b, first + rows_of_part_any(n))
    transform_rows(have, table, out, work, first, last, n, k, True, True, mode, radices, 256 // kind.bits)
    return 0
