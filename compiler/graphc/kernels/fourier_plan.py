# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a transform of n numbers is done, and the table of roots of unity that it reads.

These functions are in the kernel language, and run in Python as well: tables of static sizes are made when
the graph is, those of others by the kernel ``fft_table``. `roots(out, n, r0, r1, c0, c1)` writes
``exp(-2 pi i r c / n)`` for the rows r and the columns c, real and imaginary parts as neighbours; there is
one for kernels and one for NumPy.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import apart

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
    """Which stages the kernel of n numbers has: 2, 4, 8, 16 for 2, 4, 3, 5, and 1 for others.

    There are few combinations, since each is a kernel of its own.
    """
    p = largest_factor(n)
    if p > LARGEST or p <= 2:
        return 6
    return 30 if p <= 5 else 31


def complex_mode(n, widest):
    """How n complex numbers are transformed, with vectors of so many lanes."""
    if largest_factor(n) > LARGEST:
        return CHIRP
    if widest == 8 and n % 8 == 0 and n >= 64:
        return ROW_8
    if n % 4 == 0 and n >= 16:
        return ROW_4
    return LANES


def real_mode(n, widest):
    """How n real numbers are transformed; of an even n, as half as many complex ones."""
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
    """Numbers in the table of Bluestein's algorithm in front of that of its transforms."""
    return 2 * n + 2 * power_above(n)


@apart
def fill_stages(out, n, roots):
    """The table of `fourier_stages.stages`; returns how many numbers it has."""
    at, left = 0, n
    while left > 1:
        p = radix_of(left)
        m = left // p
        if p > 5:
            half = p // 2
            roots(out[at:], p, 1, half + 1, 1, half + 1)
            at += 2 * half * half
        roots(out[at:], left, 0, m, 1, p)
        at += 2 * m * (p - 1)
        left = m
    return at


@apart
def fill_row(out, n, width, roots):
    """The table of a row in lanes."""
    m = n // width
    at = fill_stages(out, m, roots)
    roots(out[at:], n, 1, width, 0, m)
    return at + 2 * m * (width - 1)


def fill_odd(out, n, roots):
    """The table of an odd number of reals."""
    at, left = 0, n
    while left > 1:
        p = largest_factor(left)
        m, half = left // p, p // 2
        roots(out[at:], p, 1, half + 1, 1, half + 1)
        at += 2 * half * half
        roots(out[at:], left, 0, m, 1, half + 1)
        at += 2 * m * half
        at += fill_stages(out[at:], m, roots)
        left = m
    return at


def fill_chirp(out, n, widest, roots, squares, transformed):
    """The chirp, its transform, and the table of that."""
    m = power_above(n)
    squares(out, n)
    at = 2 * n + 2 * m
    at += fill_row(out[at:], m, complex_mode(m, widest), roots)
    transformed(out, n, m, widest)
    return at


def fill_complex(out, n, mode, widest, roots, squares, transformed):
    """The table of complex numbers."""
    if mode == CHIRP:
        return fill_chirp(out, n, widest, roots, squares, transformed)
    if mode == LANES:
        return fill_stages(out, n, roots)
    return fill_row(out, n, mode, roots)


def fill_table(out, n, real, widest, roots, squares, transformed):
    """The table of a transform; returns how many numbers it has, at most `numbers_of_table`."""
    if n < 1:
        return 0
    if real:
        mode = real_mode(n, widest)
        if n % 2 == 1:
            if mode == ODD:
                return fill_odd(out, n, roots)
            return fill_chirp(out, n, widest, roots, squares, transformed)
        at = fill_complex(out, n // 2, mode, widest, roots, squares, transformed)
        roots(out[at:], n, 1, 2, 0, n // 4 + 1)
        return at + 2 * (n // 4 + 1)
    mode = complex_mode(n, widest)
    return fill_complex(out, n, mode, widest, roots, squares, transformed)
