# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transforms of real numbers.

An even number of them is transformed as half as many complex numbers; `split` and `join` are the rest of the
work. An odd number n = p m is taken apart by its largest prime factor p: of the p series that this makes one
is real, and is done in the same way; the others are pairs of conjugates, of which one is transformed
(H. V. Sorensen et al., Real-valued fast Fourier transform algorithms, 1987).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import apart, backwards, evens, local, odds, put, row, type_of
from graphc.kernels.fourier_lanes import put_number, stage_numbers
from graphc.kernels.fourier_plan import LARGEST, factors_of, largest_factor
from graphc.kernels.fourier_stages import im_of, re_of, stages

# -- even sizes ----------------------------------------------------------------------------------------------


@apart
def split(zr, zi, yr, yi, t, half, w, s, into):
    """The transform of 2 * half reals from that of the even ones plus i times the odd ones.

    Args:
        zr, zi: the planes of that: a row if s is 1, else w series, and s is w.
        yr, yi: the result, half + 1 numbers (see `put_number`).
        t: the roots of 2 * half.
    """
    a, b = row(zr, 0, s), row(zi, 0, s)
    zero = row(zr, 0, s, 0)
    put_number(yr, yi, 0, a + b, zero, s, into)
    put_number(yr, yi, s * half, a - b, zero, s, into)
    k = 1
    if s == 1:
        # Vectors from both ends until they meet.
        while 2 * k + 2 * w - 2 < half:
            split_step(zr, zi, yr, yi, t, k, half - k - w + 1, s, w, into, True)
            k += w
    while 2 * k <= half:
        split_step(zr, zi, yr, yi, t, k, half - k, s, s, into, False)
        k += 1


def split_step(zr, zi, yr, yi, t, k, o, s, v, into, mirrored):
    """The numbers k and o = half - k; if mirrored, v numbers from k on and from o on."""
    ar, ai, br, bi = row(zr, s * k, v), row(zi, s * k, v), row(zr, s * o, v), row(zi, s * o, v)
    if mirrored:
        br, bi = backwards(br), backwards(bi)
    er, ei, dr, di = 0.5 * (ar + br), 0.5 * (ai - bi), 0.5 * (ai + bi), 0.5 * (br - ar)
    f, g = row(t, 2 * k, v if mirrored else 1), row(t, 2 * k + (v if mirrored else 1), v if mirrored else 1)
    fr, fi = dr * evens(f, g) - di * odds(f, g), dr * odds(f, g) + di * evens(f, g)
    put_number(yr, yi, s * k, er + fr, ei + fi, v, into)
    cr, ci = er - fr, fi - ei
    if mirrored:
        put_number(yr, yi, s * o, backwards(cr), backwards(ci), v, into)
    else:
        put_number(yr, yi, s * o, cr, ci, v, into)


@apart
def join(xr, xi, zr, zi, t, half, w, s, packed):
    """The inverse of `split`, times 2. The imaginary parts of the first and the last number do not count.

    With `packed`, xr is a row of neighbours.
    """
    c = 2 if packed else 1
    a, b = row(xr, 0, s), row(xr, c * s * half, s)
    put(zr, 0, a + b)
    put(zi, 0, a - b)
    k = 1
    if s == 1:
        while 2 * k + 2 * w - 2 < half:
            join_step(xr, xi, zr, zi, t, k, half - k - w + 1, s, w, packed, True)
            k += w
    while 2 * k <= half:
        join_step(xr, xi, zr, zi, t, k, half - k, s, s, packed, False)
        k += 1


def join_step(xr, xi, zr, zi, t, k, o, s, v, packed, mirrored):
    c = 2 if packed else 1
    second = xr[v:] if packed else xi
    f, g = row(xr, c * s * k, v), row(second, c * s * k, v)
    ar, ai = re_of(f, g, packed), im_of(f, g, packed)
    f, g = row(xr, c * s * o, v), row(second, c * s * o, v)
    br, bi = re_of(f, g, packed), im_of(f, g, packed)
    if mirrored:
        br, bi = backwards(br), backwards(bi)
    er, ei, dr, di = ar + br, ai - bi, ar - br, ai + bi
    roots, more = (
        row(t, 2 * k, v if mirrored else 1),
        row(t, 2 * k + (v if mirrored else 1), v if mirrored else 1),
    )
    cr, ci = (
        di * evens(roots, more) - dr * odds(roots, more),
        dr * evens(roots, more) + di * odds(roots, more),
    )
    put(zr, s * k, er - cr)
    put(zi, s * k, ei + ci)
    cr, ci = er + cr, ci - ei
    put(zr, s * o, backwards(cr) if mirrored else cr)
    put(zi, s * o, backwards(ci) if mirrored else ci)


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
            turned_outputs(first, sums, t, turns, zr, zi, j, k, half, w, 2)
        if half % 2 == 1:
            turned_outputs(first, sums, t, turns, zr, zi, j, half - 1, half, w, 1)


def turned_outputs(first, sums, t, turns, zr, zi, j, k, half, w, both):
    """Series k, and k + 1: two at a time read the sums once."""
    t, more = t[2 * k * half :], t[2 * (k + both - 1) * half :]
    c, d = row(sums, 0, w), row(sums, w, w)
    a, b, e, f = first + t[0] * c, t[1] * d, first + more[0] * c, more[1] * d
    for i in range(1, half):
        c, d = row(sums, 2 * w * i, w), row(sums, 2 * w * i + w, w)
        a, b = a + t[2 * i] * c, b + t[2 * i + 1] * d
        if both == 2:
            e, f = e + more[2 * i] * c, f + more[2 * i + 1] * d
    put_turned(zr, zi, turns, j * half + k, a, b, w)
    if both == 2:
        put_turned(zr, zi, turns, j * half + k + 1, e, f, w)


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
            real_outputs(first, parts, t, x[w * j :], p, m, k, w, 2)
        if half % 2 == 1:
            real_outputs(first, parts, t, x[w * j :], p, m, half - 1, w, 1)


def real_outputs(first, parts, t, x, p, m, k, w, both):
    half = p // 2
    t, more = t[2 * k * half :], t[2 * (k + both - 1) * half :]
    c, d = row(parts, 0, w), row(parts, w, w)
    a, b, e, f = first + t[0] * c, t[1] * d, first + more[0] * c, more[1] * d
    for i in range(1, half):
        c, d = row(parts, 2 * w * i, w), row(parts, 2 * w * i + w, w)
        a, b = a + t[2 * i] * c, b + t[2 * i + 1] * d
        if both == 2:
            e, f = e + more[2 * i] * c, f + more[2 * i + 1] * d
    put(x, w * m * (k + 1), a + b)
    put(x, w * m * (p - 1 - k), a - b)
    if both == 2:
        put(x, w * m * (k + 2), e + f)
        put(x, w * m * (p - 2 - k), e - f)


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
    """Numbers in the table in front of that of the stages."""
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
        stages(ar, ai, br, bi, t, factors, 0, count, m, (p // 2) * w, w, True, radices)
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
        stages(ai, ar, bi, br, t[numbers_of(p, m) :], factors, 0, count, m, (p // 2) * w, w, True, radices)
        put_together(have, br, bi, want, t, p, m, w)
        swap = have
        have = want
        want = swap
