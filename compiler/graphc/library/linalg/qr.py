# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""QR decompositions: of small real matrices here, else by LAPACK.

Both have the signs of LAPACK: an element of the diagonal of R is negative where the one that its reflection
found there was not. An m x n matrix takes about n^2 (m - n / 3) multiplications for R and as many for Q, in
rows of vectors; each reflection waits for a root and a division.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.linalg import copy, identity, over_batch, transpose
from graphc.library.linalg.small import ROWS, WIDTH, below, load, moderate, reflect, reflections, reflector
from graphc.native.builtins import call, choose, local, positions, put, ref, row, type_of, view

# LAPACK's blocks are at most that wide.
_BLOCK = 64


@over_batch("qr")
def _qr(attributes, a, k):
    return tuple(np.linalg.qr(a, "reduced" if k == min(a.shape) else "complete"))


def _scratch(s):
    # The reflectors (as many columns as Q has), their factors, and work space.
    return (s["m"] * s["n"] + s["m"] * s["k"] + s["k"] + (s["n"] + s["k"] + 1) * _BLOCK) * 16


def reflectors(a, columns, tau, work, m, n):
    """Factors the matrix into reflectors, by columns."""
    info = ref(0)
    transpose(a, columns, m, n)
    call("lapack_?geqrf", ref(m), ref(n), columns, ref(m), tau, work, ref((n + 1) * _BLOCK), info)


def is_done(a, q, r, m, n, k, vectors):
    """Decomposes small matrices, if they need no scaling; says whether it did."""
    if type_of(a).is_complex:
        return False
    if max(m, max(n, k)) > WIDTH:
        return False
    return small(a, q, r, m, n, k, vectors) == 0


def small(a, q, r, m, n, k, vectors):
    """Writes the factors, q if `vectors`; returns 1 if that is left to LAPACK."""
    kind = type_of(a)
    x, v = local(ROWS * WIDTH, kind), local(ROWS * WIDTH, kind)
    factors, found = local(ROWS, kind), local(2, kind)
    if not moderate(load(a, x, m, n)):
        return 1
    count = min(m, n)
    for j in range(count):
        if reflector(below(x, j, m), j, v, found, j) != 0:
            return 1
        factors[j] = found[0]
        if found[0] != 0.0:
            reflect(x, v[j * WIDTH :], found[0], j, m)
        x[j * WIDTH + j] = found[1]
    for i in range(k):
        values = row(x, i * WIDTH, WIDTH)
        put(r, i * n, choose(positions(WIDTH) >= i, values, 0.0), n)
    if vectors:
        reflections(v, factors, x, m, count, 0)
        for i in range(m):
            put(q, i * k, row(x, i * WIDTH, WIDTH), k)
    return 0


def upper(columns, r, m, n, k):
    for i in range(k):
        for j in range(n):
            r[i * n + j] = columns[j * m + i] if j >= i else 0.0


def _cost(s):
    # Roots and divisions that wait for each other, and for large matrices the multiplications.
    return s["m"] * s["n"] * (s["k"] * 100 + 8_000) + 100_000


@kernel("qr", _qr, scratch=_scratch, flags="contract", cost=_cost)
def qr(a, q, r, scratch, m, n, k):
    if m == 0 or n == 0:
        identity(q, m, k)
        for i in range(k * n):
            r[i] = 0.0
        return
    if is_done(a, q, r, m, n, k, 1):
        return
    kind = type_of(a)
    columns = view(scratch, kind)
    tau = columns[m * n + m * k :]
    work = tau[k:]
    reflectors(a, columns, tau, work, m, n)
    upper(columns, r, m, n, k)
    info = ref(0)
    name = "lapack_?ungqr" if kind.is_complex else "lapack_?orgqr"
    call(name, ref(m), ref(k), ref(min(m, n)), columns, ref(m), tau, work, ref((k + 1) * _BLOCK), info)
    transpose(columns, q, k, m)


@over_batch("qr_r")
def _qr_r(attributes, a, k):
    return np.linalg.qr(a, "r")


@kernel("qr_r", _qr_r, scratch=_scratch, flags="contract", cost=_cost)
def qr_r(a, r, scratch, m, n, k):
    if m == 0 or n == 0 or is_done(a, r, r, m, n, k, 0):
        return
    columns = view(scratch, type_of(a))
    tau = columns[m * n :]
    reflectors(a, columns, tau, tau[k:], m, n)
    upper(columns, r, m, n, k)


@over_batch("qr_raw")
def _qr_raw(attributes, a, k):
    return tuple(np.linalg.qr(a, "raw"))


@kernel("qr_raw", _qr_raw, scratch=_scratch)
def qr_raw(a, h, tau, scratch, m, n, k):
    if m == 0 or n == 0:
        return
    columns = view(scratch, type_of(a))
    reflectors(a, columns, tau, columns[m * n :], m, n)
    copy(columns, h, m * n)
