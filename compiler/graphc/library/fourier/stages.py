# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of Stockham's algorithm: a transform by one of the factors of the size, which also sorts.

Numbers are in planes, real parts and imaginary parts apart, as s series one beside the other: number j of
series q is at ``j * s + q``. What a stage does with the series is the same for all of them, so that `w` at a
time are a vector; with `whole`, s is known to be a multiple of w. Parts exchanged on the way in and out make
the inverse transform.

The table has the roots of unity in the order of their use (see `graphc.library.fourier`).
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.fourier import LARGEST
from graphc.native.builtins import apart, evens, inlined, local, odds, put, row, type_of

SQRT_3_4 = 0.8660254037844386
COS_1, COS_2 = 0.30901699437494745, -0.8090169943749475
SIN_1, SIN_2 = 0.9510565162951535, 0.5877852522924731


@apart
def stages(xr, xi, yr, yi, table, factors, count, n, s, w, whole, radices):
    """The stages of a transform of n numbers; the last one writes y.

    x and y take turns: with an even number of stages the input is in y, with an odd one in x.
    """
    left, series, t = n, s, table
    for i in range(count):
        p = factors[i]
        m = left // p
        odd = (count - i) % 2 == 1
        ar, ai = xr if odd else yr, xi if odd else yi
        br, bi = yr if odd else xr, yi if odd else xi
        if radices & 4 and p == 4:
            stage_4(ar, ai, br, bi, t, m, series, w, 0, whole)
        elif radices & 2 and p == 2:
            stage_2(ar, ai, br, bi, t, m, series, w, whole)
        elif radices & 8 and p == 3:
            stage_3(ar, ai, br, bi, t, m, series, w, whole)
        elif radices & 16 and p == 5:
            stage_5(ar, ai, br, bi, t, m, series, w, whole)
        elif radices & 1:
            stage_odd(ar, ai, br, bi, t, p, m, series, w, whole)
            t = t[(p - 1) * (p - 1) // 2 :]
        t = t[2 * m * (p - 1) :]
        left = m
        series = series * p


def re_of(a, b, packed):
    """The real parts: of planes a, of neighbours those at even places; packed 2 exchanges the parts."""
    if packed == 0:
        return a
    if packed == 1:
        return evens(a, b)
    return odds(a, b)


def im_of(a, b, packed):
    if packed == 0:
        return b
    if packed == 1:
        return odds(a, b)
    return evens(a, b)


@inlined
def number(xr, xi, i, w, left, packed):
    """The parts of w numbers."""
    a, b = row(xr, i, w, left), row(xi, i, w, left)
    return re_of(a, b, packed), im_of(a, b, packed)


def stage_4(xr, xi, yr, yi, t, m, s, w, packed, whole):
    """With `packed`, x has real and imaginary parts as neighbours, and xi is xr moved by w."""
    scale = 1 if packed == 0 else 2
    far = s * m * scale
    for j in range(m):
        z = t[6 * j :]
        for q in range(0, s, w):
            left = None if whole else s - q
            i, o = (s * j + q) * scale, 4 * s * j + q
            ar, ai = number(xr, xi, i, w, left, packed)
            br, bi = number(xr, xi, i + far, w, left, packed)
            cr, ci = number(xr, xi, i + 2 * far, w, left, packed)
            dr, di = number(xr, xi, i + 3 * far, w, left, packed)
            pr, pi, qr, qi = ar + cr, ai + ci, ar - cr, ai - ci
            rr, ri, sr, si = br + dr, bi + di, bi - di, dr - br
            put(yr, o, pr + rr, left)
            put(yi, o, pi + ri, left)
            put_product(yr, yi, o + s, qr + sr, qi + si, z[0], z[1], left)
            put_product(yr, yi, o + 2 * s, pr - rr, pi - ri, z[2], z[3], left)
            put_product(yr, yi, o + 3 * s, qr - sr, qi - si, z[4], z[5], left)


def stage_2(xr, xi, yr, yi, t, m, s, w, whole):
    for j in range(m):
        for q in range(0, s, w):
            left = None if whole else s - q
            i, o = s * j + q, 2 * s * j + q
            ar, ai = number(xr, xi, i, w, left, 0)
            br, bi = number(xr, xi, i + s * m, w, left, 0)
            put(yr, o, ar + br, left)
            put(yi, o, ai + bi, left)
            put_product(yr, yi, o + s, ar - br, ai - bi, t[2 * j], t[2 * j + 1], left)


def stage_3(xr, xi, yr, yi, t, m, s, w, whole):
    for j in range(m):
        z = t[4 * j :]
        for q in range(0, s, w):
            left = None if whole else s - q
            i, o = s * j + q, 3 * s * j + q
            ar, ai = number(xr, xi, i, w, left, 0)
            br, bi = number(xr, xi, i + s * m, w, left, 0)
            cr, ci = number(xr, xi, i + 2 * s * m, w, left, 0)
            tr, ti = br + cr, bi + ci
            mr, mi = ar - 0.5 * tr, ai - 0.5 * ti
            dr, di = SQRT_3_4 * (br - cr), SQRT_3_4 * (bi - ci)
            put(yr, o, ar + tr, left)
            put(yi, o, ai + ti, left)
            put_product(yr, yi, o + s, mr + di, mi - dr, z[0], z[1], left)
            put_product(yr, yi, o + 2 * s, mr - di, mi + dr, z[2], z[3], left)


def stage_5(xr, xi, yr, yi, t, m, s, w, whole):
    far = s * m
    for j in range(m):
        z = t[8 * j :]
        for q in range(0, s, w):
            left = None if whole else s - q
            i, o = s * j + q, 5 * s * j + q
            ar, ai = number(xr, xi, i, w, left, 0)
            br, bi = number(xr, xi, i + far, w, left, 0)
            cr, ci = number(xr, xi, i + 2 * far, w, left, 0)
            dr, di = number(xr, xi, i + 3 * far, w, left, 0)
            er, ei = number(xr, xi, i + 4 * far, w, left, 0)
            t1r, t1i, t3r, t3i = br + er, bi + ei, br - er, bi - ei
            t2r, t2i, t4r, t4i = cr + dr, ci + di, cr - dr, ci - di
            put(yr, o, ar + t1r + t2r, left)
            put(yi, o, ai + t1i + t2i, left)
            m1r, m1i = ar + COS_1 * t1r + COS_2 * t2r, ai + COS_1 * t1i + COS_2 * t2i
            m2r, m2i = ar + COS_2 * t1r + COS_1 * t2r, ai + COS_2 * t1i + COS_1 * t2i
            n1r, n1i = SIN_1 * t3r + SIN_2 * t4r, SIN_1 * t3i + SIN_2 * t4i
            n2r, n2i = SIN_2 * t3r - SIN_1 * t4r, SIN_2 * t3i - SIN_1 * t4i
            put_product(yr, yi, o + s, m1r + n1i, m1i - n1r, z[0], z[1], left)
            put_product(yr, yi, o + 2 * s, m2r + n2i, m2i - n2r, z[2], z[3], left)
            put_product(yr, yi, o + 3 * s, m2r - n2i, m2i + n2r, z[4], z[5], left)
            put_product(yr, yi, o + 4 * s, m1r - n1i, m1i + n1r, z[6], z[7], left)


def put_product(yr, yi, o, a, b, u, v, left):
    put(yr, o, a * u - b * v, left)
    put(yi, o, a * v + b * u, left)


@apart
def stage_odd(xr, xi, yr, yi, t, p, m, s, w, whole):
    """By sums and differences of the numbers that meet conjugate roots; the table begins with these."""
    half = p // 2
    z = t[2 * half * half :]
    sums = local(4 * 8 * (LARGEST // 2), type_of(xr))
    far = s * m
    for j in range(m):
        for q in range(0, s, w):
            left = None if whole else s - q
            i, o = s * j + q, p * s * j + q
            ar, ai = row(xr, i, w, left), row(xi, i, w, left)
            br, bi = ar, ai
            for k in range(half):
                at, back = i + (k + 1) * far, i + (p - 1 - k) * far
                er, ei = number(xr, xi, at, w, left, 0)
                fr, fi = number(xr, xi, back, w, left, 0)
                put(sums, 4 * w * k, er + fr)
                put(sums, 4 * w * k + w, ei + fi)
                put(sums, 4 * w * k + 2 * w, er - fr)
                put(sums, 4 * w * k + 3 * w, ei - fi)
                br, bi = br + (er + fr), bi + (ei + fi)
            put(yr, o, br, left)
            put(yi, o, bi, left)
            for k in range(0, half - 1, 2):
                odd_outputs(ar, ai, sums, t, z, yr, yi, o, p, j, k, s, w, 2, left)
            if half % 2 == 1:
                odd_outputs(ar, ai, sums, t, z, yr, yi, o, p, j, half - 1, s, w, 1, left)


def odd_outputs(ar, ai, sums, t, z, yr, yi, o, p, j, k, s, w, both, left):
    """The outputs k + 1 and p - 1 - k, and likewise for k + 1: two at a time read the sums once."""
    half = p // 2
    t, more = t[2 * k * half :], t[2 * (k + both - 1) * half :]
    cr, ci, dr, di = row(sums, 0, w), row(sums, w, w), row(sums, 2 * w, w), row(sums, 3 * w, w)
    er, ei, fr, fi = ar + more[0] * cr, ai + more[0] * ci, more[1] * dr, more[1] * di
    cr, ci, dr, di = ar + t[0] * cr, ai + t[0] * ci, t[1] * dr, t[1] * di
    for i in range(1, half):
        gr, gi = row(sums, 4 * w * i, w), row(sums, 4 * w * i + w, w)
        hr, hi = row(sums, 4 * w * i + 2 * w, w), row(sums, 4 * w * i + 3 * w, w)
        u, v = t[2 * i], t[2 * i + 1]
        cr, ci, dr, di = cr + u * gr, ci + u * gi, dr + v * hr, di + v * hi
        if both == 2:
            u, v = more[2 * i], more[2 * i + 1]
            er, ei, fr, fi = er + u * gr, ei + u * gi, fr + v * hr, fi + v * hi
    put_pair(yr, yi, z[2 * j * (p - 1) :], o, p, k, s, cr, ci, dr, di, left)
    if both == 2:
        put_pair(yr, yi, z[2 * j * (p - 1) :], o, p, k + 1, s, er, ei, fr, fi, left)


def put_pair(yr, yi, z, o, p, k, s, cr, ci, dr, di, left):
    first, last = 2 * k, 2 * (p - 2 - k)
    put_product(yr, yi, o + (k + 1) * s, cr - di, ci + dr, z[first], z[first + 1], left)
    put_product(yr, yi, o + (p - 1 - k) * s, cr + di, ci - dr, z[last], z[last + 1], left)
