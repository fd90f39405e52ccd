# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms: the algorithm for n numbers, and the table of roots of unity that it reads.

These functions are in the kernel language, and run in Python as well: tables of static sizes are made when
the graph is, those of others by the kernel ``fft_table``. What they call to make roots comes in two kinds,
for kernels and for NumPy:

* `around(circle, n)`: all n roots ``exp(-2 pi i k / n)``, to be looked up.
* `roots(out, circle, whole, n, r0, r1, c0, c1)`: those with ``k = r c`` for rows r and columns c, where
  ``r c0`` and r are less than n; real and imaginary parts are neighbours. The circle has as many roots as
  `whole`, a multiple of n. All numbers in calls are variables, so that one routine does for all of them.
* `squares(out, circle, n)`: the chirp, ``exp(-pi i k k / n)``.
* `transformed(out, circle, n, m)`: the transform of its conjugate, by roots of m.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.native.builtins import apart, call, cast, type_of

# Largest prime factor that is done by its definition.
LARGEST = 61
# How transforms are done. ROW_4 and ROW_8: number j of a row is in lane j % 4, or j % 8, of vectors. LANES: a
# lane has a row of its own, and ODD likewise, of reals. ALONE: one row of another size. CHIRP: by Bluestein's
# algorithm. ANY: known at run time.
ANY, ROW_4, ROW_8, LANES, ALONE, ODD, CHIRP = 0, 4, 8, 1, 2, 3, 5


@apart
def radix_of(n):
    if n % 4 == 0:
        return 4
    if n % 2 == 0:
        return 2
    p = 3
    while p * p <= n:
        if n % p == 0:
            return p
        p += 2
    return n


@apart
def largest_factor(n):
    """The largest prime factor; 1 of 1."""
    largest = 1
    while n > 1:
        p = radix_of(n)
        if p == 4:
            p = 2
        largest = max(largest, p)
        n = n // p
    return largest


@apart
def factors_of(n, factors):
    """The radices of the stages; how many there are."""
    count = 0
    while n > 1:
        p = radix_of(n)
        factors[count] = p
        n = n // p
        count += 1
    return count


def radices_of(n):
    """Radices of the stages for n numbers: 2, 4, 8, 16 for 2, 4, 3, 5, and 1 for others.

    There are few combinations, since each is a kernel of its own.
    """
    p = largest_factor(n)
    if p > LARGEST or p <= 2:
        return 6
    return 30 if p <= 5 else 31


def complex_mode(n, widest):
    """Algorithm for transforms of n complex numbers, with vectors of so many lanes."""
    if largest_factor(n) > LARGEST:
        return CHIRP
    if widest == 8 and n % 8 == 0 and n >= 64:
        return ROW_8
    if n % 4 == 0 and n >= 16:
        return ROW_4
    return LANES


def real_mode(n, widest):
    """Algorithm for transforms of n real numbers; of an even n, as half as many complex ones."""
    if n % 2 == 0:
        return complex_mode(n // 2, widest)
    return ODD if largest_factor(n) <= LARGEST else CHIRP


def power_above(n):
    """A power of two that holds the convolution of a chirp."""
    m = 64
    while m < 2 * n - 1:
        m = 2 * m
    return m


def chirp_numbers(n):
    """Numbers in the table of Bluestein's algorithm before that of its transforms."""
    return 2 * n + 2 * power_above(n)


@apart
def fill_stages(out, circle, whole, n, roots):
    """The table of `fourier_stages.stages`; returns how many numbers it has."""
    at, left, zero, one = 0, n, 0, 1
    while left > 1:
        p = radix_of(left)
        m = left // p
        if p > 5:
            half = p // 2
            roots(out[at:], circle, whole, p, one, half + 1, one, half + 1)
            at += 2 * half * half
        roots(out[at:], circle, whole, left, zero, m, one, p)
        at += 2 * m * (p - 1)
        left = m
    return at


@apart
def fill_row(out, circle, whole, n, width, roots):
    """The table of a row in lanes."""
    m, lanes, zero, one = n // width, width, 0, 1
    at = fill_stages(out, circle, whole, m, roots)
    roots(out[at:], circle, whole, n, one, lanes, zero, m)
    return at + 2 * m * (width - 1)


def fill_odd(out, circle, n, roots):
    """The table of an odd number of reals, by a circle of n."""
    at, left, zero, one = 0, n, 0, 1
    while left > 1:
        p = largest_factor(left)
        m, half = left // p, p // 2
        roots(out[at:], circle, n, p, one, half + 1, one, half + 1)
        at += 2 * half * half
        roots(out[at:], circle, n, left, zero, m, one, half + 1)
        at += 2 * m * half
        at += fill_stages(out[at:], circle, n, m, roots)
        left = m
    return at


def fill_chirp(out, circle, n, widest, around, roots, squares, transformed):
    """The chirp, its transform, and the table of that."""
    m = power_above(n)
    squares(out, circle, n)
    around(circle, m)
    at = chirp_numbers(n)
    at += fill_row(out[at:], circle, m, m, complex_mode(m, widest), roots)
    transformed(out, circle, n, m)
    return at


def fill_table(out, circle, n, real, widest, around, roots, squares, transformed):
    """The table of a transform; returns how many numbers it has."""
    if n < 1:
        return 0
    mode = real_mode(n, widest) if real else complex_mode(n, widest)
    size = n // 2 if real and n % 2 == 0 else n
    at, zero, one, two = 0, 0, 1, 2
    if mode == CHIRP:
        at = fill_chirp(out, circle, size, widest, around, roots, squares, transformed)
    around(circle, n)
    if mode == LANES:
        at = fill_stages(out, circle, n, size, roots)
    elif mode == ODD:
        at = fill_odd(out, circle, n, roots)
    elif mode != CHIRP:
        at = fill_row(out, circle, n, size, mode, roots)
    if real and n % 2 == 0:
        roots(out[at:], circle, n, n, one, two, zero, n // 4 + 1)
        at += 2 * (n // 4 + 1)
    return at


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
