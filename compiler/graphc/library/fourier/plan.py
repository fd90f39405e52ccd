# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Algorithm for a transform of n numbers, and the table of roots of unity that it reads.

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

from graphc.native.builtins import apart

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
