# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows and lanes: rows side by side as vectors, and a single row as the lanes of vectors.

A row of n = w m numbers is a matrix of m vectors of w lanes. `fourier_stages` transforms the lanes as series
of m numbers each, and what is left are m transforms of w numbers, across the lanes (D. H. Bailey, FFTs in
external or hierarchical memory, 1990).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier.stages import im_of, re_of, stage_4, stages
from graphc.native.builtins import apart, evens, high, local, low, odds, put, row, type_of, unrolled

SQRT_1_2 = 0.7071067811865476


def turn(a, b, w):
    """One of the steps that transpose w vectors: halves of vectors by turns."""
    for i in unrolled(w // 2):
        x, y = row(a, w * i, w), row(a, w * (i + w // 2), w)
        put(b, 2 * w * i, low(x, y))
        put(b, 2 * w * i + w, high(x, y))


# -- rows side by side ---------------------------------------------------------------------------------------


@apart
def to_lanes(x, stride, have, count, yr, yi, pairs, w):
    """The first `count` numbers of w rows, side by side: those at odd places in yi, if they are pairs.

    There are `have` rows at x; the last one stands for those after it.
    """
    a, b = local(w * w, type_of(yr)), local(w * w, type_of(yr))
    done = count - count % w
    for g in range(0, done, w):
        rows = x[g:]
        for i in unrolled(w):
            put(a, w * i, row(rows, stride * min(i, have - 1), w))
        turn(a, b, w)
        turn(b, a, w)
        if w == 8:
            turn(a, b, w)
        at = w * (g // 2) if pairs else w * g
        zr, zi = yr[at:], yi[at:]
        for i in unrolled(w):
            z = row(a if w == 4 else b, w * i, w)
            put(zi if pairs and i % 2 == 1 else zr, w * (i // 2) if pairs else w * i, z)
    for g in range(done, count):
        at = w * (g // 2) if pairs else w * g
        for i in range(w):
            if pairs and g % 2 == 1:
                yi[at + i] = x[g + stride * min(i, have - 1)]
            else:
                yr[at + i] = x[g + stride * min(i, have - 1)]


@apart
def from_lanes(xr, xi, out, stride, have, count, pairs, w):
    """The inverse of `to_lanes`: writes as many rows as there are."""
    a, b = local(w * w, type_of(xr)), local(w * w, type_of(xr))
    done = count - count % w
    for g in range(0, done, w):
        at = w * (g // 2) if pairs else w * g
        zr, zi = xr[at:], xi[at:]
        for i in unrolled(w):
            put(a, w * i, row(zi if pairs and i % 2 == 1 else zr, w * (i // 2) if pairs else w * i, w))
        turn(a, b, w)
        turn(b, a, w)
        if w == 8:
            turn(a, b, w)
        y = out[g:]
        for i in unrolled(w):
            if i < have:
                put(y, stride * i, row(a if w == 4 else b, w * i, w))
    for g in range(done, count):
        at = w * (g // 2) if pairs else w * g
        for i in range(have):
            if pairs and g % 2 == 1:
                out[g + stride * i] = xi[at + i]
            else:
                out[g + stride * i] = xr[at + i]


# -- a row in lanes ------------------------------------------------------------------------------------------


def unpack(x, xi, yr, yi, n, w, packed):
    """Neighbours to planes."""
    for k in range(0, n, w):
        a, b = row(x, 2 * k, w), row(xi, 2 * k, w)
        put(yr, k, re_of(a, b, packed))
        put(yi, k, im_of(a, b, packed))


def pack(xr, xi, y, n, w, into):
    """Planes to neighbours (see `put_number`)."""
    for k in range(0, n, w):
        put_number(y, y, k, row(xr, k, w), row(xi, k, w), w, into)


@apart
def transform_row(x, ar, ai, br, bi, yr, yi, table, turns, factors, count, n, w, packed, into, radices):
    """A transform of n numbers, a multiple of w.

    Args:
        x: the numbers as neighbours (see `stage_4`). With `packed` 0 they are in planes, in a if the number
            of stages is odd, else in b.
        ar, ai, br, bi: two pairs of planes of n numbers.
        yr, yi: the planes of the result, which may be a; with `into`, yr has neighbours.
        table: of the stages, which `fill_row` makes.
        turns: what follows there (see `stage_numbers`), the roots between the stages and the lanes.
        factors, count: the stages of n / w numbers.
    """
    m = n // w
    # What is left after the first stage.
    left, series, t, done = m, w, table, 0
    odd = count % 2 == 1
    if packed > 0:
        if radices & 4 and count > 0 and factors[0] == 4:
            left, series, t, done = m // 4, 4 * w, table[6 * (m // 4) :], 1
            stage_4(x, x[w:], br if odd else ar, bi if odd else ai, table, m // 4, w, w, packed, True)
        else:
            unpack(x, x[w:], ar if odd else br, ai if odd else bi, n, w, packed)
    stages(ar, ai, br, bi, t, factors[done:], count - done, left, series, w, True, radices)
    lane_steps(br, bi, yr, yi, turns, m, w, into)


@apart
def stage_numbers(factors, count, n):
    """Half the numbers in the table of the stages."""
    total, left = 0, n
    for i in range(count):
        p = factors[i]
        left = left // p
        total += left * (p - 1)
        if p > 5:
            total += (p // 2) * (p // 2)
    return total


@apart
def lane_steps(xr, xi, yr, yi, t, m, w, into):
    """m transforms across the lanes, w of them at a time; the last w, which there are, may do some again."""
    k = 0
    while k < m:
        lane_step(xr, xi, yr, yi, t, min(k, m - w), m, w, into)
        k += w


def lane_step(xr, xi, yr, yi, t, k, m, w, into):
    """w transforms from the one at k on."""
    kind = type_of(xr)
    ar, ai, br, bi = local(w * w, kind), local(w * w, kind), local(w * w, kind), local(w * w, kind)
    turn(xr[w * k :], ar, w)
    turn(xi[w * k :], ai, w)
    turn(ar, br, w)
    turn(ai, bi, w)
    if w == 4:
        times_roots(br, bi, ar, ai, t, k, m, w)
        dft_4(ar, ai, 0, 1, br, bi, 0, w)
    else:
        turn(br, ar, w)
        turn(bi, ai, w)
        times_roots(ar, ai, br, bi, t, k, m, w)
        dft_4(br, bi, 0, 2, ar, ai, 0, w)
        dft_4(br, bi, 1, 2, ar, ai, 4, w)
        join_8(ar, ai, br, bi, w)
    # To the places of the result, one after the other, m numbers apart.
    for i in unrolled(w):
        put_number(yr, yi, k + m * i, row(br, w * i, w), row(bi, w * i, w), w, into)


def times_roots(xr, xi, yr, yi, t, k, m, w):
    put(yr, 0, row(xr, 0, w))
    put(yi, 0, row(xi, 0, w))
    for j in unrolled(w - 1):
        at = w * (j + 1)
        f, g = row(t, 2 * (j * m + k), w), row(t, 2 * (j * m + k) + w, w)
        u, o = evens(f, g), odds(f, g)
        a, b = row(xr, at, w), row(xi, at, w)
        put(yr, at, a * u - b * o)
        put(yi, at, a * o + b * u)


def dft_4(xr, xi, i, step, yr, yi, o, w):
    ar, ai = row(xr, w * i, w), row(xi, w * i, w)
    br, bi = row(xr, w * (i + step), w), row(xi, w * (i + step), w)
    cr, ci = row(xr, w * (i + 2 * step), w), row(xi, w * (i + 2 * step), w)
    dr, di = row(xr, w * (i + 3 * step), w), row(xi, w * (i + 3 * step), w)
    pr, pi, qr, qi = ar + cr, ai + ci, ar - cr, ai - ci
    rr, ri, sr, si = br + dr, bi + di, bi - di, dr - br
    put(yr, w * o, pr + rr)
    put(yi, w * o, pi + ri)
    put(yr, w * (o + 1), qr + sr)
    put(yi, w * (o + 1), qi + si)
    put(yr, w * (o + 2), pr - rr)
    put(yi, w * (o + 2), pi - ri)
    put(yr, w * (o + 3), qr - sr)
    put(yi, w * (o + 3), qi - si)


def join_8(xr, xi, yr, yi, w):
    """The transform of eight numbers from those of the even and the odd ones."""
    sum_and_difference(xr, xi, 0, row(xr, 4 * w, w), row(xi, 4 * w, w), yr, yi, w)
    a, b = row(xr, 5 * w, w), row(xi, 5 * w, w)
    sum_and_difference(xr, xi, 1, SQRT_1_2 * (a + b), SQRT_1_2 * (b - a), yr, yi, w)
    sum_and_difference(xr, xi, 2, row(xi, 6 * w, w), -row(xr, 6 * w, w), yr, yi, w)
    a, b = row(xr, 7 * w, w), row(xi, 7 * w, w)
    sum_and_difference(xr, xi, 3, SQRT_1_2 * (b - a), -SQRT_1_2 * (a + b), yr, yi, w)


def sum_and_difference(xr, xi, k, a, b, yr, yi, w):
    c, d = row(xr, w * k, w), row(xi, w * k, w)
    put(yr, w * k, c + a)
    put(yi, w * k, d + b)
    put(yr, w * (k + 4), c - a)
    put(yi, w * (k + 4), d - b)


def put_number(yr, yi, at, a, b, v, into):
    """Complex numbers to planes, or as neighbours; `into` 2 exchanges the parts."""
    if into == 0:
        put(yr, at, a)
        put(yi, at, b)
    elif into == 1:
        put(yr, 2 * at, low(a, b))
        put(yr, 2 * at + v, high(a, b))
    else:
        put(yr, 2 * at, low(b, a))
        put(yr, 2 * at + v, high(b, a))
