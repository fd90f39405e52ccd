# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of real numbers.

An even number of them is transformed as half as many complex numbers; `untangle` is the rest of the work. An
odd number n = p m is taken apart by its largest prime factor p: of the p series that this makes one is real,
and is done in the same way; the others are pairs of conjugates, of which one is transformed (H. V. Sorensen
et al., Real-valued fast Fourier transform algorithms, 1987).

Transforms of rows whose numbers are in the lanes of vectors (see `graphc.library.fourier.lanes`).
"""

# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.lanes import pack, put_number, stage_numbers, transform_row, unpack
from graphc.library.fourier.plan import LARGEST, factors_of, largest_factor
from graphc.library.fourier.stages import im_of, re_of, stages
from graphc.native.builtins import apart, backwards, evens, local, odds, put, row, type_of

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
