# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of roots of unity that transforms read (see `graphc.kernels.fourier_plan`)."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.kernels import kernel
from graphc.kernels.builtins import apart, call, cast, local, type_of
from graphc.kernels.fourier_lanes import transform_row
from graphc.kernels.fourier_plan import (
    chirp_numbers,
    factors_of,
    fill_stages,
    fill_table,
)

PI = np.pi


def _table(attributes, precision, n, size):
    out = np.zeros((*precision.shape, int(size)))
    for index in np.ndindex(*precision.shape):
        out[index] = table_of(int(n[index]), attributes["real"], precision.dtype, int(size))
    return out


def table_of(n, real, dtype, size=None):
    """The table in NumPy, for transforms of real or complex numbers of a precision."""
    widest = lanes_of(np.dtype(dtype).itemsize)
    if size is None:
        size = fill_table(np.empty(0), n, real, widest, *[lambda *_: None] * 3)
    # Reads of whole vectors go beyond the end.
    out = np.zeros(size + 16)
    fill_table(out, n, real, widest, _numpy_roots, _numpy_squares, _numpy_transformed)
    return out[:size]


def stages_table(n):
    """The table of a transform of series of n complex numbers side by side."""
    out = np.zeros(fill_stages(np.empty(0), n, lambda *_: None))
    fill_stages(out, n, _numpy_roots)
    return out


def lanes_of(itemsize):
    return 8 if itemsize == 4 else 4


def unit_roots(k, n):
    """exp(-2 pi i k / n) from angles up to pi / 4, so that the roots are symmetric."""
    octant, rest = np.divmod(8 * (k % n), n)
    odd = octant % 2 == 1
    angle = np.where(odd, n - rest, rest) * (PI / 4) / n
    c, s = np.cos(angle), np.sin(angle)
    first = np.where(odd, s, c) + 1j * np.where(odd, c, s)
    return np.conj(first * np.array([1, 1j, -1, -1j])[octant // 2])


def _numpy_roots(out, n, r0, r1, c0, c1):
    values = unit_roots(np.outer(np.arange(r0, r1), np.arange(c0, c1)), n).ravel()
    out[: 2 * values.size] = values.view(float)


def _numpy_squares(out, n):
    out[: 2 * n] = unit_roots(np.arange(n) ** 2, 2 * n).view(float)


def _numpy_transformed(out, n, m, widest):
    chirp = np.conj(out[: 2 * n].view(complex))
    filled = np.zeros(m, complex)
    filled[:n] = chirp
    filled[m - n + 1 :] = chirp[:0:-1]
    values = np.fft.fft(filled)
    out[2 * n : 2 * n + m], out[2 * n + m : 2 * n + 2 * m] = values.real, values.imag


@kernel("fft_table", _table)
def fft_table(precision, size, out, t, *, real):
    kind = type_of(precision)
    for k in range(t):
        out[k] = 0
    fill_table(out, size[0], real, 8 if kind.bits == 32 else 4, roots, squares, transformed)


@apart
def root(out, at, k, n):
    """exp(-2 pi i k / n), from sines and cosines of angles up to pi / 4."""
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
    out[2 * at] = cast(re, type_of(out))
    out[2 * at + 1] = cast(-im, type_of(out))


@apart
def roots(out, n, r0, r1, c0, c1):
    at = 0
    for r in range(r0, r1):
        for c in range(c0, c1):
            root(out, at, r * c % n, n)
            at += 1


def squares(out, n):
    for k in range(n):
        root(out, k, k * k % (2 * n), 2 * n)


def transformed(out, n, m, widest):
    """The transform of the conjugate chirp, wrapped around. The end of the table is its work space."""
    spare = out[chirp_numbers(n) + 2 * m :]
    ar, ai, br, bi = spare, spare[m:], spare[2 * m :], spare[3 * m :]
    factors = local(64, "i64")
    count = factors_of(m // widest, factors)
    odd = count % 2 == 1
    zr = ar if odd else br
    zi = ai if odd else bi
    for k in range(m):
        zr[k], zi[k] = 0, 0
    for k in range(n):
        zr[k], zi[k] = out[2 * k], -out[2 * k + 1]
        if k > 0:
            zr[m - k], zi[m - k] = out[2 * k], -out[2 * k + 1]
    t = out[chirp_numbers(n) :]
    yr, yi = out[2 * n :], out[2 * n + m :]
    transform_row(out, ar, ai, br, bi, yr, yi, t, factors, count, m, widest, 0, 0, 6)
