# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of Stockham's algorithm: a transform by one of the factors of the size, which also sorts.

Numbers of one stage that share a root are neighbours, so that butterflies run along contiguous memory from
the second stage on.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.kernels.builtins import local, type_of

# Largest prime factor that is done by its definition.
LARGEST = 61


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


def count_stages(n):
    """How many stages there are, or -1 if a factor is too large."""
    count = 0
    while n > 1:
        p = radix_of(n)
        if p > LARGEST:
            return -1
        n = n // p
        count += 1
    return count


def stages_of(x, out, work, table, n, step, inverse, stages):
    """A transform of n numbers; `table` has the roots of n * step. x may not be out."""
    if stages == 0:
        for k in range(2 * n):
            out[k] = x[k]
        return
    left, s, source = n, 1, x
    for i in range(stages):
        p = radix_of(left)
        m = left // p
        target = out if (stages - i) % 2 == 1 else work
        if p == 4:
            if s == 1:
                stage_4_first(source, target, table, m, step, inverse)
            else:
                stage_4(source, target, table, m, s, step, inverse)
        elif p == 2:
            stage_2(source, target, table, m, s, step, inverse)
        elif p == 3:
            stage_3(source, target, table, m, s, step, inverse)
        elif p == 5:
            stage_5(source, target, table, m, s, step, inverse)
        else:
            stage_any(source, target, table, p, m, s, step, inverse)
        source = target
        left = m
        s = s * p


def stage_4_first(x, y, table, m, step, inverse):
    for j in range(m):
        k1, k2, k3 = 2 * j * step, 4 * j * step, 6 * j * step
        u1, u2, u3 = table[k1], table[k2], table[k3]
        v1 = -table[k1 + 1] if inverse else table[k1 + 1]
        v2 = -table[k2 + 1] if inverse else table[k2 + 1]
        v3 = -table[k3 + 1] if inverse else table[k3 + 1]
        a, b, c, d = 2 * j, 2 * (j + m), 2 * (j + 2 * m), 2 * (j + 3 * m)
        pr, pi = x[a] + x[c], x[a + 1] + x[c + 1]
        qr, qi = x[a] - x[c], x[a + 1] - x[c + 1]
        rr, ri = x[b] + x[d], x[b + 1] + x[d + 1]
        sr = x[d + 1] - x[b + 1] if inverse else x[b + 1] - x[d + 1]
        si = x[b] - x[d] if inverse else x[d] - x[b]
        o = 8 * j
        y[o], y[o + 1] = pr + rr, pi + ri
        er, ei = qr + sr, qi + si
        y[o + 2], y[o + 3] = er * u1 - ei * v1, er * v1 + ei * u1
        fr, fi = pr - rr, pi - ri
        y[o + 4], y[o + 5] = fr * u2 - fi * v2, fr * v2 + fi * u2
        gr, gi = qr - sr, qi - si
        y[o + 6], y[o + 7] = gr * u3 - gi * v3, gr * v3 + gi * u3


def stage_4(x, y, table, m, s, step, inverse):
    for j in range(m):
        k = 2 * j * s * step
        u1, u2, u3 = table[k], table[2 * k], table[3 * k]
        v1 = -table[k + 1] if inverse else table[k + 1]
        v2 = -table[2 * k + 1] if inverse else table[2 * k + 1]
        v3 = -table[3 * k + 1] if inverse else table[3 * k + 1]
        butterfly_4(
            x[2 * s * j :], x[2 * s * (j + m) :], x[2 * s * (j + 2 * m) :], x[2 * s * (j + 3 * m) :],
            y[8 * s * j :], y[2 * s * (4 * j + 1) :], y[2 * s * (4 * j + 2) :], y[2 * s * (4 * j + 3) :],
            u1, v1, u2, v2, u3, v3, s, inverse,
        )  # fmt: skip


def butterfly_4(a, b, c, d, y0, y1, y2, y3, u1, v1, u2, v2, u3, v3, s, inverse):
    for q in range(s):
        r, i = 2 * q, 2 * q + 1
        pr, pi = a[r] + c[r], a[i] + c[i]
        qr, qi = a[r] - c[r], a[i] - c[i]
        rr, ri = b[r] + d[r], b[i] + d[i]
        sr = d[i] - b[i] if inverse else b[i] - d[i]
        si = b[r] - d[r] if inverse else d[r] - b[r]
        y0[r], y0[i] = pr + rr, pi + ri
        er, ei = qr + sr, qi + si
        y1[r], y1[i] = er * u1 - ei * v1, er * v1 + ei * u1
        fr, fi = pr - rr, pi - ri
        y2[r], y2[i] = fr * u2 - fi * v2, fr * v2 + fi * u2
        gr, gi = qr - sr, qi - si
        y3[r], y3[i] = gr * u3 - gi * v3, gr * v3 + gi * u3


def stage_2(x, y, table, m, s, step, inverse):
    for j in range(m):
        k = 2 * j * s * step
        v = -table[k + 1] if inverse else table[k + 1]
        butterfly_2(
            x[2 * s * j :], x[2 * s * (j + m) :], y[4 * s * j :], y[4 * s * j + 2 * s :], table[k], v, s
        )


def butterfly_2(a, b, y0, y1, u, v, s):
    for q in range(s):
        r, i = 2 * q, 2 * q + 1
        dr, di = a[r] - b[r], a[i] - b[i]
        y0[r], y0[i] = a[r] + b[r], a[i] + b[i]
        y1[r], y1[i] = dr * u - di * v, dr * v + di * u


def stage_3(x, y, table, m, s, step, inverse):
    for j in range(m):
        k = 2 * j * s * step
        v1 = -table[k + 1] if inverse else table[k + 1]
        v2 = -table[2 * k + 1] if inverse else table[2 * k + 1]
        butterfly_3(
            x[2 * s * j :], x[2 * s * (j + m) :], x[2 * s * (j + 2 * m) :],
            y[6 * s * j :], y[2 * s * (3 * j + 1) :], y[2 * s * (3 * j + 2) :],
            table[k], v1, table[2 * k], v2, s, inverse,
        )  # fmt: skip


def butterfly_3(a, b, c, y0, y1, y2, u1, v1, u2, v2, s, inverse):
    for q in range(s):
        r, i = 2 * q, 2 * q + 1
        tr, ti = b[r] + c[r], b[i] + c[i]
        mr, mi = a[r] - 0.5 * tr, a[i] - 0.5 * ti
        dr, di = 0.8660254037844386 * (b[r] - c[r]), 0.8660254037844386 * (b[i] - c[i])
        sr = -di if inverse else di
        si = dr if inverse else -dr
        y0[r], y0[i] = a[r] + tr, a[i] + ti
        er, ei = mr + sr, mi + si
        fr, fi = mr - sr, mi - si
        y1[r], y1[i] = er * u1 - ei * v1, er * v1 + ei * u1
        y2[r], y2[i] = fr * u2 - fi * v2, fr * v2 + fi * u2


def stage_5(x, y, table, m, s, step, inverse):
    for j in range(m):
        k = 2 * j * s * step
        w = local(8, type_of(x))
        for i in range(4):
            w[2 * i] = table[(i + 1) * k]
            w[2 * i + 1] = -table[(i + 1) * k + 1] if inverse else table[(i + 1) * k + 1]
        butterfly_5(x[2 * s * j :], y[10 * s * j :], w, 2 * s * m, 2 * s, s, inverse)


def butterfly_5(x, y, w, far, near, s, inverse):
    for q in range(s):
        r, i = 2 * q, 2 * q + 1
        b, c, d, e = x[far:], x[2 * far :], x[3 * far :], x[4 * far :]
        t1r, t1i = b[r] + e[r], b[i] + e[i]
        t2r, t2i = c[r] + d[r], c[i] + d[i]
        t3r, t3i = b[r] - e[r], b[i] - e[i]
        t4r, t4i = c[r] - d[r], c[i] - d[i]
        ar, ai = x[r], x[i]
        y[r], y[i] = ar + t1r + t2r, ai + t1i + t2i
        m1r = ar + 0.30901699437494745 * t1r - 0.8090169943749475 * t2r
        m1i = ai + 0.30901699437494745 * t1i - 0.8090169943749475 * t2i
        m2r = ar - 0.8090169943749475 * t1r + 0.30901699437494745 * t2r
        m2i = ai - 0.8090169943749475 * t1i + 0.30901699437494745 * t2i
        n1r = 0.9510565162951535 * t3r + 0.5877852522924731 * t4r
        n1i = 0.9510565162951535 * t3i + 0.5877852522924731 * t4i
        n2r = 0.5877852522924731 * t3r - 0.9510565162951535 * t4r
        n2i = 0.5877852522924731 * t3i - 0.9510565162951535 * t4i
        s1r = -n1i if inverse else n1i
        s1i = n1r if inverse else -n1r
        s2r = -n2i if inverse else n2i
        s2i = n2r if inverse else -n2r
        store_product(y[near:], q, m1r + s1r, m1i + s1i, w[0], w[1])
        store_product(y[2 * near :], q, m2r + s2r, m2i + s2i, w[2], w[3])
        store_product(y[3 * near :], q, m2r - s2r, m2i - s2i, w[4], w[5])
        store_product(y[4 * near :], q, m1r - s1r, m1i - s1i, w[6], w[7])


def store_product(y, q, a, b, u, v):
    y[2 * q] = a * u - b * v
    y[2 * q + 1] = a * v + b * u


def stage_any(x, y, table, p, m, s, step, inverse):
    """By the definition of the transform of p numbers."""
    for j in range(m):
        for k in range(p):
            to = y[2 * s * (p * j + k) :]
            for q in range(2 * s):
                to[q] = 0
            for i in range(p):
                # The root for the transform, and the one that follows it, in one.
                at = 2 * ((i * k % p * m + j * k) % (p * m) * s * step)
                v = -table[at + 1] if inverse else table[at + 1]
                add_product(x[2 * s * (j + m * i) :], to, table[at], v, s)


def add_product(x, y, u, v, s):
    for q in range(s):
        r, i = 2 * q, 2 * q + 1
        y[r] += x[r] * u - x[i] * v
        y[i] += x[r] * v + x[i] * u
