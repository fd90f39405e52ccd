# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that go along rows: running sums, products and extremes; elements read and changed at positions.

Float sums go in blocks of eight, as `graphc.lowering.scans.recurrences` explains: one addition in eight waits
for the one before.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.native.builtins import imag, real, type_of

# How elements are combined: the attribute `kind` of `running` is an index of this tuple. In `scatter` 0 is an
# element that is set, and the numbers of these are one more.
KINDS = ("add", "mul", "max", "min")
_UFUNCS = (np.add, np.multiply, np.maximum, np.minimum)
_OUTSIDE = [("IndexError", "an index is out of bounds")]


def product(a, b):
    kind = type_of(a)
    if kind.is_complex:
        return complex(real(a) * real(b) - imag(a) * imag(b), real(a) * imag(b) + imag(a) * real(b))
    return a and b if kind.is_bool else a * b


def larger(a, b):
    """NaN wins."""
    return a if a > b or a != a else b


def smaller(a, b):
    return a if a < b or a != a else b


def combined(a, b, kind):
    if kind == 0:
        return a or b if type_of(a).is_bool else a + b
    if kind == 1:
        return product(a, b)
    if kind == 2:
        return a or b if type_of(a).is_bool else larger(a, b)
    return a and b if type_of(a).is_bool else smaller(a, b)


def _running(attributes, x):
    step = -1 if attributes["reverse"] else 1
    return _UFUNCS[attributes["kind"]].accumulate(x[..., ::step], axis=-1, dtype=x.dtype)[..., ::step]


def place(i, n, reverse):
    if reverse:
        return n - 1 - i
    return i


def add_eight(x, out, carry, i, n, reverse):
    """Running sums of eight elements after a sum; returns the last."""
    a0, a1 = x[place(i, n, reverse)], x[place(i + 1, n, reverse)]
    a2, a3 = x[place(i + 2, n, reverse)], x[place(i + 3, n, reverse)]
    a4, a5 = x[place(i + 4, n, reverse)], x[place(i + 5, n, reverse)]
    a6, a7 = x[place(i + 6, n, reverse)], x[place(i + 7, n, reverse)]
    two, four = a0 + a1, a4 + a5
    half = two + (a2 + a3)
    out[place(i, n, reverse)] = carry + a0
    out[place(i + 1, n, reverse)] = carry + two
    out[place(i + 2, n, reverse)] = carry + (two + a2)
    out[place(i + 3, n, reverse)] = carry + half
    out[place(i + 4, n, reverse)] = carry + (half + a4)
    out[place(i + 5, n, reverse)] = carry + (half + four)
    out[place(i + 6, n, reverse)] = carry + (half + (four + a6))
    last = carry + (half + (four + (a6 + a7)))
    out[place(i + 7, n, reverse)] = last
    return last


@kernel("running", _running)
def running(x, out, n, *, kind, reverse):
    if n == 0:
        return
    carry = x[place(0, n, reverse)]
    out[place(0, n, reverse)] = carry
    start = 1
    if kind == 0:
        if type_of(x).is_float:
            for block in range((n - 1) // 8):
                carry = add_eight(x, out, carry, 1 + block * 8, n, reverse)
            start = 1 + (n - 1) // 8 * 8
    for i in range(start, n):
        carry = combined(carry, x[place(i, n, reverse)], kind)
        out[place(i, n, reverse)] = carry


@kernel("gather", lambda attributes, x, indices: np.take_along_axis(x, indices, axis=-1), errors=_OUTSIDE)
def gather(x, indices, out, n, k):
    for i in range(k):
        at = indices[i]
        at = at + n if at < 0 else at
        if at < 0 or at >= n:
            return 1
        out[i] = x[at]
    return 0


def _scattered(attributes, x, y, indices):
    out = np.array(x)
    kind = attributes["kind"]
    if kind == 0:
        for place in np.ndindex(y.shape):
            out[(*place[:-1], indices[place])] = y[place]
        return out
    grid = np.ogrid[tuple(slice(n) for n in indices.shape)]
    _UFUNCS[kind - 1].at(out, (*grid[:-1], indices), y)
    return out


@kernel("scatter", _scattered, errors=_OUTSIDE)
def scatter(x, y, indices, out, n, k, *, kind):
    for i in range(n):
        out[i] = x[i]
    for i in range(k):
        at = indices[i]
        at = at + n if at < 0 else at
        if at < 0 or at >= n:
            return 1
        if kind == 0:
            out[at] = y[i]
        else:
            out[at] = combined(out[at], y[i], kind - 1)
    return 0
