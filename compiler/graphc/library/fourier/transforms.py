# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Discrete Fourier transforms of rows: Stockham's algorithm, and Bluestein's for sizes with large prime
factors. The table that each reads is that of `fourier_plan.fill_table`.

Source: T. G. Stockham, High-speed convolution and correlation (1966).

Source: L. Bluestein, A linear filtering approach to the computation of the discrete Fourier transform (1970).

An even number of them is transformed as half as many complex numbers; `untangle` is the rest of the work. An
odd number n = p m is taken apart by its largest prime factor p: of the p series that this makes one is real,
and is done in the same way; the others are pairs of conjugates, of which one is transformed (H. V. Sorensen
et al., Real-valued fast Fourier transform algorithms, 1987).

Transforms of rows whose numbers are in the lanes of vectors (see `graphc.library.fourier.lanes`).
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.fourier import (
    ALONE,
    ANY,
    CHIRP,
    LANES,
    LARGEST,
    ODD,
    ROW_4,
    ROW_8,
    chirp_numbers,
    complex_mode,
    factors_of,
    largest_factor,
    power_above,
    real_mode,
)
from graphc.library.fourier.lanes import (
    from_lanes,
    pack,
    put_number,
    stage_numbers,
    to_lanes,
    transform_row,
    unpack,
)
from graphc.library.fourier.stages import im_of, re_of, stages
from graphc.native.builtins import apart, backwards, cast, evens, local, odds, put, row, type_of, view

# -- even sizes ----------------------------------------------------------------------------------------------


@apart
def untangle(xr, xi, yr, yi, t, half, w, s, packed, inverse):
    """The transform of 2 * half reals from that of the even ones plus i times the odd ones.

    Or, with `inverse`, back, times 2; the imaginary parts of the first and the last number do not count.

    Args:
        xr, xi: half numbers in planes: a row if s is 1, else w series, and s is w.
        yr, yi: the result, half + 1 numbers.
        t: the roots of 2 * half.
        packed: the half + 1 numbers are neighbours at yr (see `put_number`); of the inverse, at xr.
    """
    if inverse:
        a, b = row(xr, 0, s), row(xr, (2 if packed else 1) * s * half, s)
        put(yr, 0, a + b)
        put(yi, 0, a - b)
    else:
        a, b, zero = row(xr, 0, s), row(xi, 0, s), row(xr, 0, s, 0)
        put_number(yr, yi, 0, a + b, zero, s, packed)
        put_number(yr, yi, s * half, a - b, zero, s, packed)
    k = 1
    if s == 1:
        # Vectors from both ends until they meet.
        while 2 * k + 2 * w - 2 < half:
            untangle_step(xr, xi, yr, yi, t, k, half - k - w + 1, s, w, packed, inverse, True)
            k += w
    while 2 * k <= half:
        untangle_step(xr, xi, yr, yi, t, k, half - k, s, s, packed, inverse, False)
        k += 1


def untangle_step(xr, xi, yr, yi, t, k, o, s, v, packed, inverse, mirrored):
    """The numbers k and o = half - k; if mirrored, v numbers from k on and from o on.

    Sums with the conjugates, and differences turned by the root. The inverse turns by the conjugate and adds
    where this subtracts, which is the same with another sign of the real part.
    """
    c = 2 if packed and inverse else 1
    more = xr[v:] if packed and inverse else xi
    a, b = row(xr, c * s * k, v), row(more, c * s * k, v)
    ar, ai = re_of(a, b, packed if inverse else 0), im_of(a, b, packed if inverse else 0)
    a, b = row(xr, c * s * o, v), row(more, c * s * o, v)
    br, bi = re_of(a, b, packed if inverse else 0), im_of(a, b, packed if inverse else 0)
    if mirrored:
        br, bi = backwards(br), backwards(bi)
    er, ei, dr, di = ar + br, ai - bi, ai + bi, (ar - br if inverse else br - ar)
    if not inverse:
        er, ei, dr, di = 0.5 * er, 0.5 * ei, 0.5 * dr, 0.5 * di
    f, g = row(t, 2 * k, v if mirrored else 1), row(t, 2 * k + (v if mirrored else 1), v if mirrored else 1)
    u, z = evens(f, g), odds(f, g)
    fr, fi = (di * z - dr * u if inverse else dr * u - di * z), dr * z + di * u
    put_number(yr, yi, s * k, er + fr, ei + fi, v, 0 if inverse else packed)
    cr, ci = er - fr, fi - ei
    if mirrored:
        cr, ci = backwards(cr), backwards(ci)
    put_number(yr, yi, s * o, cr, ci, v, 0 if inverse else packed)


# -- odd sizes -----------------------------------------------------------------------------------------------


def take_apart(x, y, zr, zi, t, p, m, w):
    """The first stage of p m reals: y is the series that is real, z the others, already turned."""
    half = p // 2
    sums = local(2 * 8 * (LARGEST // 2), type_of(x))
    turns = t[2 * half * half :]
    for j in range(m):
        first = row(x, w * j, w)
        total = first
        for k in range(half):
            a, b = row(x, w * (j + m * (k + 1)), w), row(x, w * (j + m * (p - 1 - k)), w)
            put(sums, 2 * w * k, a + b)
            put(sums, 2 * w * k + w, a - b)
            total = total + (a + b)
        put(y, w * j, total)
        for k in range(0, half - 1, 2):
            outputs_of_sums(first, sums, t, zr, zi, turns, j * half, m, k, half, w, 2, False)
        if half % 2 == 1:
            outputs_of_sums(first, sums, t, zr, zi, turns, j * half, m, half - 1, half, w, 1, False)


def outputs_of_sums(first, sums, t, yr, yi, turns, at, far, k, half, w, both, inverse):
    """Sums k, and k + 1, with cosines and sines: two at a time read the terms once.

    Turned, they are numbers of the series y from `at` on; or, with `inverse`, of two sums real numbers.
    """
    t, more = t[2 * k * half :], t[2 * (k + both - 1) * half :]
    c, d = row(sums, 0, w), row(sums, w, w)
    a, b, e, f = first + t[0] * c, t[1] * d, first + more[0] * c, more[1] * d
    for i in range(1, half):
        c, d = row(sums, 2 * w * i, w), row(sums, 2 * w * i + w, w)
        a, b = a + t[2 * i] * c, b + t[2 * i + 1] * d
        if both == 2:
            e, f = e + more[2 * i] * c, f + more[2 * i + 1] * d
    if inverse:
        put(yr, w * far * (k + 1), a + b)
        put(yr, w * far * (2 * half - k), a - b)
        if both == 2:
            put(yr, w * far * (k + 2), e + f)
            put(yr, w * far * (2 * half - 1 - k), e - f)
    else:
        put_turned(yr, yi, turns, at + k, a, b, w)
        if both == 2:
            put_turned(yr, yi, turns, at + k + 1, e, f, w)


def put_turned(zr, zi, turns, at, a, b, w):
    u, v = turns[2 * at], turns[2 * at + 1]
    put(zr, w * at, a * u - b * v)
    put(zi, w * at, a * v + b * u)


def put_together(y, zr, zi, x, t, p, m, w):
    """The inverse of `take_apart`, times p."""
    half = p // 2
    parts = local(2 * 8 * (LARGEST // 2), type_of(x))
    turns = t[2 * half * half :]
    for j in range(m):
        first = row(y, w * j, w)
        total = first
        for k in range(half):
            at = j * half + k
            u, v = turns[2 * at], turns[2 * at + 1]
            a, b = row(zr, w * at, w), row(zi, w * at, w)
            c, d = 2.0 * (a * u + b * v), 2.0 * (b * u - a * v)
            put(parts, 2 * w * k, c)
            put(parts, 2 * w * k + w, d)
            total = total + c
        put(x, w * j, total)
        for k in range(0, half - 1, 2):
            outputs_of_sums(first, parts, t, x[w * j :], x, turns, 0, m, k, half, w, 2, True)
        if half % 2 == 1:
            outputs_of_sums(first, parts, t, x[w * j :], x, turns, 0, m, half - 1, half, w, 1, True)


def exchange(xr, xi, zr, zi, left, stride, p, m, w, give):
    """The frequencies of the complex series: to their places x, or (`give` 0) from there.

    Frequency k2 of series k1 is the k1 + p k2 of `left`; those above the middle are conjugates.
    """
    half = p // 2
    for f2 in range(m):
        for f1 in range(half):
            at, f = w * (f2 * half + f1), f1 + 1 + p * f2
            above = 2 * f > left
            to = w * stride * (left - f if above else f)
            if give:
                put(xr, to, row(zr, at, w))
                put(xi, to, -row(zi, at, w) if above else row(zi, at, w))
            else:
                put(zr, at, row(xr, to, w))
                put(zi, at, -row(xi, to, w) if above else row(xi, to, w))


def numbers_of(p, m):
    """Numbers in the table before that of the stages."""
    return 2 * (p // 2) * (p // 2 + m)


@apart
def transform_odd(x, other, ar, ai, br, bi, yr, yi, table, n, w, radices):
    """w series of n reals, n odd: the frequencies y. `other` has room for n vectors, a and b for n / 2."""
    factors = local(64, "i64")
    left, stride, t = n, 1, table
    have, want = x, other
    while left > 1:
        p = largest_factor(left)
        m = left // p
        count = factors_of(m, factors)
        turned = count % 2 == 1
        take_apart(have, want, ar if turned else br, ai if turned else bi, t, p, m, w)
        t = t[numbers_of(p, m) :]
        stages(ar, ai, br, bi, t, factors, count, m, (p // 2) * w, w, True, radices)
        t = t[2 * stage_numbers(factors, count, m) :]
        exchange(yr, yi, br, bi, left, stride, p, m, w, 1)
        swap = have
        have = want
        want = swap
        left = m
        stride = stride * p
    put(yr, 0, row(have, 0, w))
    put(yi, 0, row(have, 0, w, 0))


@apart
def inverse_odd(xr, xi, y, other, ar, ai, br, bi, table, n, w, radices):
    """The inverse of `transform_odd`, times n."""
    factors = local(64, "i64")
    # Of each level: size, stride, position in the table.
    levels = local(3 * 64, "i64")
    depth, left, stride, at = 0, n, 1, 0
    while left > 1:
        p = largest_factor(left)
        m = left // p
        levels[3 * depth], levels[3 * depth + 1], levels[3 * depth + 2] = left, stride, at
        at += numbers_of(p, m) + 2 * stage_numbers(factors, factors_of(m, factors), m)
        depth += 1
        left = m
        stride = stride * p
    have, want = y, other
    if depth % 2 == 1:
        have, want = other, y
    put(have, 0, row(xr, 0, w))
    while depth > 0:
        depth -= 1
        left, stride, at = levels[3 * depth], levels[3 * depth + 1], levels[3 * depth + 2]
        p = largest_factor(left)
        m = left // p
        t = table[at:]
        count = factors_of(m, factors)
        turned = count % 2 == 1
        exchange(xr, xi, ar if turned else br, ai if turned else bi, left, stride, p, m, w, 0)
        stages(ai, ar, bi, br, t[numbers_of(p, m) :], factors, count, m, (p // 2) * w, w, True, radices)
        put_together(have, br, bi, want, t, p, m, w)
        swap = have
        have = want
        want = swap


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


def end_of_chirp(n, w):
    """Numbers in the table of `fill_chirp`."""
    m = power_above(n)
    factors = local(64, "i64")
    count = factors_of(m // w, factors)
    return chirp_numbers(n) + 2 * stage_numbers(factors, count, m // w) + numbers_of_turns(m, w)


def chirp_row(x, xi, y, yi, work, table, n, wanted, w, packed, into, radices):
    """The transform of n numbers as a convolution with the chirp; `wanted` of them are stored.

    Args:
        x, xi: planes (`packed` 0), neighbours, those exchanged (2), or real numbers (3).
        y, yi: likewise by `into`; 3 stores the imaginary parts only.
    """
    m = power_above(n)
    far = m + APART
    ar, ai, br, bi = work, work[far:], work[2 * far :], work[3 * far :]
    factors = local(64, "i64")
    count = factors_of(m // w, factors)
    odd = count % 2 == 1
    zr, zi = ar if odd else br, ai if odd else bi
    for k in range(n):
        u, v = table[2 * k], table[2 * k + 1]
        if packed == 3:
            zr[k], zi[k] = x[k] * u, x[k] * v
        else:
            a = x[k] if packed == 0 else x[2 * k + packed - 1]
            b = xi[k] if packed == 0 else x[2 * k + 2 - packed]
            zr[k], zi[k] = a * u - b * v, a * v + b * u
    convolve(x, zr, zi, ar, ai, br, bi, table, factors, count, n, m, w, radices)
    scale = cast(1.0 / m, type_of(x))
    for k in range(wanted):
        u, v = table[2 * k] * scale, table[2 * k + 1] * scale
        a, b = ar[k] * u - ai[k] * v, ar[k] * v + ai[k] * u
        if into == 0:
            y[k], yi[k] = a, b
        elif into == 3:
            y[k] = b
        else:
            y[2 * k + into - 1], y[2 * k + 2 - into] = a, b


@apart
def convolve(x, zr, zi, ar, ai, br, bi, table, factors, count, n, m, w, radices):
    """m numbers, of which n are not 0, from z, where the transform begins, to a, with the parts exchanged."""
    for k in range(n, m):
        zr[k], zi[k] = 0, 0
    tr, ti, t = table[2 * n :], table[2 * n + m :], table[chirp_numbers(n) :]
    turns = t[2 * stage_numbers(factors, count, m // w) :]
    transform_row(x, ar, ai, br, bi, ar, ai, t, turns, factors, count, m, w, 0, 0, radices)
    for k in range(m):
        a, b = ar[k], ai[k]
        zr[k], zi[k] = a * tr[k] - b * ti[k], a * ti[k] + b * tr[k]
    transform_row(x, ai, ar, bi, br, ai, ar, t, turns, factors, count, m, w, 0, 0, radices)


def chirp_of_complex(x, out, table, work, n, w, inverse, radices):
    chirp_row(x, x, out, out, work, table, n, n, w, 2 if inverse else 1, 2 if inverse else 1, radices)


def chirp_of_reals(x, out, table, work, n, k, w, inverse, radices):
    """Real numbers to k frequencies, or back: then the imaginary parts of the first one, and of the last one
    of an even n, do not count.
    """
    size = n // 2 if n % 2 == 0 else n
    m = power_above(size)
    zr, zi = work[4 * (m + APART) :], work[4 * (m + APART) + size :]
    ends = table[end_of_chirp(size, w) :] if n % 2 == 0 else table
    if n % 2 == 0 and inverse:
        untangle(x, x, zr, zi, ends, size, w, 1, 1, True)
        chirp_row(zi, zr, out, out, work, table, size, size, w, 0, 2, radices)
    elif n % 2 == 0:
        chirp_row(x, x, zr, zi, work, table, size, size, w, 1, 0, radices)
        untangle(zr, zi, out, out, ends, size, w, 1, 1, False)
    elif inverse:
        zr[0], zi[0] = x[0], 0
        for j in range(1, k):
            zr[j], zi[j] = x[2 * j], x[2 * j + 1]
            zr[n - j], zi[n - j] = x[2 * j], -x[2 * j + 1]
        chirp_row(zi, zr, out, out, work, table, n, n, w, 0, 3, radices)
    else:
        chirp_row(x, x, out, out, work, table, n, k, w, 3, 1, radices)


def transform_rows(x, table, out, work, first, last, n, k, real, inverse, mode, radices, wide):
    """Rows from `first` to `last`.

    Args:
        x, out: complex numbers as neighbours; with `real`, x or, of the inverse, out are real.
        n, k: size of the transform, and how many frequencies there are of real numbers.
        mode: how (see `graphc.library.fourier`); ANY is found out here.
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
    return rows_of_part_any(n) if n < ELEMENTS else 1


def rows_of_part_any(n):
    return max(1, ELEMENTS // max(n, 1) // SIDE_BY_SIDE) * SIDE_BY_SIDE


def parts(b, n):
    return (b + rows_of_part(n) - 1) // rows_of_part(n)


def parts_any(b, n):
    return (b + rows_of_part_any(n) - 1) // rows_of_part_any(n)


def part_of_rows(x, table, out, scratch, b, n, k, part, mode, real, inverse, radices):
    kind = type_of(x).real
    first = part * rows_of_part(n)
    last = min(b, first + rows_of_part(n))
    have, want, work = view(x, kind), view(out, kind), view(scratch, kind)
    rows_in_lanes(have, table, want, work, first, last, n, k, mode, real, inverse, False, radices)


@kernel("fft", _fft, scratch=_work, flags="contract", cost=_cost, parts=parts)
def fft(x, table, out, scratch, b, n, part, *, inverse, mode, radices):
    part_of_rows(x, table, out, scratch, b, n, n, part, mode, False, inverse, radices)


@kernel("irfft", _irfft, scratch=_work_real, flags="contract", cost=_cost, parts=parts)
@kernel("rfft", _rfft, scratch=_work_real, flags="contract", cost=_cost, parts=parts)
def rfft(x, table, out, scratch, b, n, k, part, *, mode, radices):
    part_of_rows(x, table, out, scratch, b, n, k, part, mode, True, type_of(x).is_complex, radices)


# -- any size ------------------------------------------------------------------------------------------------

_ANY = {"scratch": _work_any, "errors": _EMPTY, "flags": "contract", "cost": _cost_any, "parts": parts_any}


def part_of_any_rows(x, table, out, scratch, b, n, k, part, real, inverse, mode, radices):
    if n < 1:
        return 1
    kind = type_of(x).real
    first = part * rows_of_part_any(n)
    last = min(b, first + rows_of_part_any(n))
    have, want, work = view(x, kind), view(out, kind), view(scratch, kind)
    transform_rows(have, table, want, work, first, last, n, k, real, inverse, mode, radices, 256 // kind.bits)
    return 0


@kernel("fft_any", _fft, **_ANY)
def fft_any(x, table, out, scratch, b, n, part, *, inverse, mode, radices):
    return part_of_any_rows(x, table, out, scratch, b, n, n, part, False, inverse, mode, radices)


@kernel("irfft_any", _irfft, **_ANY)
@kernel("rfft_any", _rfft, **_ANY)
def rfft_any(x, table, out, scratch, b, n, k, part, *, mode, radices):
    return part_of_any_rows(x, table, out, scratch, b, n, k, part, True, type_of(x).is_complex, mode, radices)
