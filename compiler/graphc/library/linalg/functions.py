# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of matrices: the exponential.

Source: N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library import kernel
from graphc.library.linalg import absolute, copy, lu, over_batch, product
from graphc.library.linalg.triangular import backward, forward
from graphc.native.builtins import cast, isnan, type_of, view

# Numerator of the diagonal Pade approximant of degree 13, and the norm up to which it is exact to rounding.
_PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)
_LARGEST_NORM = 5.371920351148152
_NAN = float("nan")


@over_batch("expm")
def _expm(attributes, a):
    from scipy.linalg import expm

    return expm(a) if a.size else a


@kernel("expm", _expm, scratch=lambda s: s["n"] * s["n"] * 7 * 16 + s["n"] * 16 + 64, flags="contract")
def expm(a, out, scratch, n):
    x = view(scratch, type_of(a))
    squarings = scaled(a, x, n)
    if squarings < 0:
        for i in range(n * n):
            out[i] = _NAN
        return
    x2, x4, x6 = x[n * n :], x[2 * n * n :], x[3 * n * n :]
    u, v, w = x[4 * n * n :], x[5 * n * n :], x[6 * n * n :]
    product(x, x, x2, n, n, n)
    product(x2, x2, x4, n, n, n)
    product(x4, x2, x6, n, n, n)
    polynomials(x, x2, x4, x6, u, v, w, n)
    pivots = view(view(x[7 * n * n :], "u8"), "i32")
    for i in range(n * n):
        w[i] = v[i] - u[i]
        out[i] = v[i] + u[i]
    lu.factor(w, pivots, n, n)
    lu.swap_like(out, pivots, n, n)
    forward(w, out, n, n, 0, 1)
    backward(w, out, n, n, 0, 0)
    for _ in range(squarings):
        copy(out, u, n * n)
        product(u, u, out, n, n, n)


def scaled(a, x, n):
    """Writes a times a power of 1/2; returns the exponent, or -1 where a is not finite."""
    norm = cast(0.0, type_of(a).real)
    for j in range(n):
        total = absolute(a[j])
        for i in range(1, n):
            total += absolute(a[i * n + j])
        norm = max(norm, total)
        if isnan(total - total):
            return -1
    squarings = 0
    factor = 1.0
    while norm > _LARGEST_NORM:
        norm = norm * 0.5
        factor = factor * 0.5
        squarings += 1
    for i in range(n * n):
        x[i] = a[i] * cast(factor, type_of(a).real)
    return squarings


def polynomials(x, x2, x4, x6, u, v, w, n):
    """u = the odd terms, v = the even ones."""
    for i in range(n * n):
        w[i] = _PADE[13] * x6[i] + _PADE[11] * x4[i] + _PADE[9] * x2[i]
    product(x6, w, v, n, n, n)
    for i in range(n * n):
        one = 1.0 if i % (n + 1) == 0 else 0.0
        w[i] = v[i] + _PADE[7] * x6[i] + _PADE[5] * x4[i] + _PADE[3] * x2[i] + _PADE[1] * one
    product(x, w, u, n, n, n)
    for i in range(n * n):
        w[i] = _PADE[12] * x6[i] + _PADE[10] * x4[i] + _PADE[8] * x2[i]
    product(x6, w, v, n, n, n)
    for i in range(n * n):
        one = 1.0 if i % (n + 1) == 0 else 0.0
        v[i] = v[i] + _PADE[6] * x6[i] + _PADE[4] * x4[i] + _PADE[2] * x2[i] + _PADE[0] * one
