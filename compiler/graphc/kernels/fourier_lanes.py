# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows and lanes: rows side by side as vectors, and a single row as the lanes of vectors.

A row of n = w m numbers is a matrix of m vectors of w lanes. `fourier_stages` transforms the lanes as series
of m numbers each, and what is left are m transforms of w numbers, across the lanes (D. H. Bailey, FFTs in
external or hierarchical memory, 1990).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import apart, evens, high, local, low, odds, put, row, type_of
from graphc.kernels.fourier_stages import im_of, re_of, stage_4, stages

SQRT_1_2 = 0.7071067811865476


def turn(a, b, i, w):
    """One of the steps that transpose w vectors: halves of vectors by turns, from the pair i on."""
    if i < w // 2:
        x, y = row(a, w * i, w), row(a, w * (i + w // 2), w)
        put(b, 2 * w * i, low(x, y))
        put(b, 2 * w * i + w, high(x, y))
        turn(a, b, i + 1, w)


# -- rows side by side ---------------------------------------------------------------------------------------


def take_rows(x, stride, have, a, i, w):
    """The vectors at x of w rows, of which there are `have`: the last one stands for those behind it."""
    if i < w:
        put(a, w * i, row(x, stride * min(i, have - 1), w))
        take_rows(x, stride, have, a, i + 1, w)


def give_rows(a, out, stride, i, w):
    if i < w:
        put(out, stride * i, row(a, w * i, w))
        give_rows(a, out, stride, i + 1, w)


def put_lanes(a, yr, yi, at, pairs, i, w):
    """Numbers to their planes; of pairs, one goes to each of the two."""
    if i < w:
        plane = yi if pairs and i % 2 == 1 else yr
        put(plane, at + w * (i // 2 if pairs else i), row(a, w * i, w))
        put_lanes(a, yr, yi, at, pairs, i + 1, w)


def take_lanes(xr, xi, at, a, pairs, i, w):
    if i < w:
        plane = xi if pairs and i % 2 == 1 else xr
        put(a, w * i, row(plane, at + w * (i // 2 if pairs else i), w))
        take_lanes(xr, xi, at, a, pairs, i + 1, w)


@apart
def to_lanes(x, stride, have, count, yr, yi, pairs, w):
    """The first `count` numbers of w rows, side by side."""
    a, b = local(w * w, type_of(yr)), local(w * w, type_of(yr))
    done = count - count % w
    for g in range(0, done, w):
        take_rows(x[g:], stride, have, a, 0, w)
        turn(a, b, 0, w)
        turn(b, a, 0, w)
        if w == 8:
            turn(a, b, 0, w)
        put_lanes(a if w == 4 else b, yr, yi, w * (g // 2) if pairs else w * g, pairs, 0, w)
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
    done = count - count % w if have == w else 0
    for g in range(0, done, w):
        take_lanes(xr, xi, w * (g // 2) if pairs else w * g, a, pairs, 0, w)
        turn(a, b, 0, w)
        turn(b, a, 0, w)
        if w == 8:
            turn(a, b, 0, w)
        give_rows(a if w == 4 else b, out[g:], stride, 0, w)
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
def transform_row(x, ar, ai, br, bi, yr, yi, table, factors, count, n, w, packed, into, radices):
    """A transform of n numbers, a multiple of w.

    Args:
        x: the numbers as neighbours (see `stage_4`). With `packed` 0 they are in planes, in a if the number
            of stages is odd, else in b.
        ar, ai, br, bi: two pairs of planes of n numbers.
        yr, yi: the planes of the result, which may be a; with `into`, yr has neighbours.
        table: of `fill_row`.
        factors, count: the stages of n / w numbers.
    """
    m = n // w
    first = 0
    if packed > 0:
        if radices & 4 and count > 0 and factors[0] == 4:
            to_b = count % 2 == 1
            stage_4(x, x[w:], br if to_b else ar, bi if to_b else ai, table, m // 4, w, w, packed, True)
            first = 1
        else:
            to_a = count % 2 == 1
            unpack(x, x[w:], ar if to_a else br, ai if to_a else bi, n, w, packed)
    stages(ar, ai, br, bi, table, factors, first, count, m, w, w, True, radices)
    lane_steps(br, bi, yr, yi, table[2 * stage_numbers(factors, count, m) :], m, w, into)


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
    """Transforms across the lanes, w of them at a time."""
    done = m - m % w
    for k in range(0, done, w):
        lane_step(xr[w * k :], xi[w * k :], yr, yi, t, k, m, w, w, into)
    for k in range(done, m):
        lane_step(xr[w * k :], xi[w * k :], yr, yi, t, k, m, w, 1, into)


def lane_step(xr, xi, yr, yi, t, k, m, w, v, into):
    """v transforms from the one at k on; v is w or 1."""
    kind = type_of(xr)
    ar, ai, br, bi = local(w * v, kind), local(w * v, kind), local(w * v, kind), local(w * v, kind)
    if v > 1:
        turn(xr, ar, 0, w)
        turn(xi, ai, 0, w)
        turn(ar, br, 0, w)
        turn(ai, bi, 0, w)
    if v == 8:
        turn(br, ar, 0, w)
        turn(bi, ai, 0, w)
        times_roots(ar, ai, br, bi, t, k, m, 0, w, v)
    elif v == 4:
        times_roots(br, bi, ar, ai, t, k, m, 0, w, v)
    else:
        times_roots(xr, xi, br if w == 8 else ar, bi if w == 8 else ai, t, k, m, 0, w, v)
    if w == 4:
        dft_4(ar, ai, 0, 1, br, bi, 0, v)
        give_lanes(br, bi, yr, yi, k, m, 0, w, v, into)
    else:
        dft_4(br, bi, 0, 2, ar, ai, 0, v)
        dft_4(br, bi, 1, 2, ar, ai, 4, v)
        join_8(ar, ai, br, bi, v)
        give_lanes(br, bi, yr, yi, k, m, 0, w, v, into)


def times_roots(xr, xi, yr, yi, t, k, m, i, w, v):
    if i == 0:
        put(yr, 0, row(xr, 0, v))
        put(yi, 0, row(xi, 0, v))
    elif i < w:
        at = 2 * ((i - 1) * m + k)
        f, g = row(t, at, v), row(t, at + v if v > 1 else at + 1, v)
        u, o = evens(f, g), odds(f, g)
        a, b = row(xr, v * i, v), row(xi, v * i, v)
        put(yr, v * i, a * u - b * o)
        put(yi, v * i, a * o + b * u)
    if i < w:
        times_roots(xr, xi, yr, yi, t, k, m, i + 1, w, v)


def dft_4(xr, xi, i, step, yr, yi, o, v):
    ar, ai = row(xr, v * i, v), row(xi, v * i, v)
    br, bi = row(xr, v * (i + step), v), row(xi, v * (i + step), v)
    cr, ci = row(xr, v * (i + 2 * step), v), row(xi, v * (i + 2 * step), v)
    dr, di = row(xr, v * (i + 3 * step), v), row(xi, v * (i + 3 * step), v)
    pr, pi, qr, qi = ar + cr, ai + ci, ar - cr, ai - ci
    rr, ri, sr, si = br + dr, bi + di, bi - di, dr - br
    put(yr, v * o, pr + rr)
    put(yi, v * o, pi + ri)
    put(yr, v * (o + 1), qr + sr)
    put(yi, v * (o + 1), qi + si)
    put(yr, v * (o + 2), pr - rr)
    put(yi, v * (o + 2), pi - ri)
    put(yr, v * (o + 3), qr - sr)
    put(yi, v * (o + 3), qi - si)


def join_8(xr, xi, yr, yi, v):
    """The transform of eight numbers from those of the even and the odd ones."""
    sum_and_difference(xr, xi, 0, row(xr, 4 * v, v), row(xi, 4 * v, v), yr, yi, v)
    a, b = row(xr, 5 * v, v), row(xi, 5 * v, v)
    sum_and_difference(xr, xi, 1, SQRT_1_2 * (a + b), SQRT_1_2 * (b - a), yr, yi, v)
    sum_and_difference(xr, xi, 2, row(xi, 6 * v, v), -row(xr, 6 * v, v), yr, yi, v)
    a, b = row(xr, 7 * v, v), row(xi, 7 * v, v)
    sum_and_difference(xr, xi, 3, SQRT_1_2 * (b - a), -SQRT_1_2 * (a + b), yr, yi, v)


def sum_and_difference(xr, xi, k, a, b, yr, yi, v):
    c, d = row(xr, v * k, v), row(xi, v * k, v)
    put(yr, v * k, c + a)
    put(yi, v * k, d + b)
    put(yr, v * (k + 4), c - a)
    put(yi, v * (k + 4), d - b)


def give_lanes(xr, xi, yr, yi, k, m, i, w, v, into):
    """To the places of the result, one behind each other m numbers away."""
    if i < w:
        a, b = row(xr, v * i, v), row(xi, v * i, v)
        put_number(yr, yi, k + m * i, a, b, v, into)
        give_lanes(xr, xi, yr, yi, k, m, i + 1, w, v, into)


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
