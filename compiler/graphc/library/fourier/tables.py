# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of roots of unity that transforms read (see `graphc.library.fourier.plan`)."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library.fourier.plan import chirp_numbers, fill_stages, fill_table
from graphc.library.registry import kernel
from graphc.native.builtins import apart, call, cast, type_of

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
        size = fill_table(np.empty(0), None, n, real, widest, *[_nothing] * 4)
    # Reads of whole vectors go beyond the end.
    out = np.zeros(size + 16)
    fill_table(out, None, n, real, widest, _nothing, _numpy_roots, _numpy_squares, _numpy_transformed)
    return out[:size]


def stages_table(n):
    """The table of a transform of series of n complex numbers side by side."""
    out = np.zeros(fill_stages(np.empty(0), None, n, n, _nothing))
    fill_stages(out, None, n, n, _numpy_roots)
    return out


def _nothing(*_):
    pass


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


def _numpy_roots(out, circle, whole, n, r0, r1, c0, c1):
    values = unit_roots(np.outer(np.arange(r0, r1), np.arange(c0, c1)), n).ravel()
    out[: 2 * values.size] = values.view(float)


def _numpy_squares(out, circle, n):
    out[: 2 * n] = unit_roots(np.arange(n) ** 2, 2 * n).view(float)


def _numpy_transformed(out, circle, n, m):
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
    n = size[0]
    # After the table and the work space of `transformed`, 2 n + 6 m numbers with m below 4 n.
    circle = out[26 * n + 512 :]
    fill_table(out, circle, n, real, 8 if kind.bits == 32 else 4, around, roots, squares, transformed)


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
def around(circle, n):
    """The n roots: an eighth of them if n is a multiple of 4, and the others mirrored."""
    some = n // 2 + 1
    if n % 4 == 0:
        some = n // 8 + 1
    elif n % 2 == 0:
        some = n // 4 + 1
    for k in range(some):
        root(circle, k, k, n)
    if n % 4 == 0:
        for k in range(some, n // 4 + 1):
            circle[2 * k], circle[2 * k + 1] = -circle[n // 2 - 2 * k + 1], -circle[n // 2 - 2 * k]
    if n % 2 == 0:
        for k in range(n // 4 + 1, n // 2 + 1):
            circle[2 * k], circle[2 * k + 1] = -circle[n - 2 * k], circle[n - 2 * k + 1]
    for k in range(n // 2 + 1, n):
        circle[2 * k], circle[2 * k + 1] = circle[2 * (n - k)], -circle[2 * (n - k) + 1]


@apart
def roots(out, circle, whole, n, r0, r1, c0, c1):
    step = whole // n
    at = 0
    for r in range(r0, r1):
        k = r * c0 * step
        for _ in range(c0, c1):
            out[at], out[at + 1] = circle[2 * k], circle[2 * k + 1]
            at += 2
            k += r * step
            if k >= whole:
                k -= whole


def squares(out, circle, n):
    around(circle, 2 * n)
    square = 0
    for k in range(n):
        out[2 * k], out[2 * k + 1] = circle[2 * square], circle[2 * square + 1]
        square += 2 * k + 1
        if square >= 2 * n:
            square -= 2 * n


def transformed(out, circle, n, m):
    """The conjugate chirp is wrapped around. There is work space for two planes after the table."""
    spare = out[chirp_numbers(n) + 2 * m :]
    xr, xi, yr, yi = spare, spare[m:], out[2 * n :], out[2 * n + m :]
    s = m
    while s > 1:
        # As many exchanges as there will be steps: the last one writes y.
        swap_re, swap_im = xr, xi
        xr, xi, yr, yi = yr, yi, swap_re, swap_im
        s = s // 2
    for k in range(m):
        yr[k], yi[k] = 0, 0
    for k in range(n):
        yr[k], yi[k] = out[2 * k], -out[2 * k + 1]
        if k > 0:
            yr[m - k], yi[m - k] = out[2 * k], -out[2 * k + 1]
    while s < m:
        swap_re, swap_im = xr, xi
        xr, xi, yr, yi = yr, yi, swap_re, swap_im
        sums_and_differences(xr, xi, yr, yi, circle, m // s // 2, s)
        s = 2 * s


@apart
def sums_and_differences(xr, xi, yr, yi, circle, half, s):
    """A stage (`graphc.library.fourier.stages`) without vectors, since speed is not that important here."""
    for j in range(half):
        u, v = circle[2 * s * j], circle[2 * s * j + 1]
        for q in range(s):
            i, o = s * j + q, 2 * s * j + q
            far = i + s * half
            er, ei = xr[i] - xr[far], xi[i] - xi[far]
            yr[o], yi[o] = xr[i] + xr[far], xi[i] + xi[far]
            yr[o + s], yi[o + s] = er * u - ei * v, er * v + ei * u
