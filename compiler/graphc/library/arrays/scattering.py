# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and changing elements at positions of their own in each core array."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library.registry import kernel
from graphc.native.builtins import imag, real, type_of

# What happens to an element at a position: the attribute `kind` is an index of this tuple.
KINDS = ("set", "add", "mul", "max", "min")
_UFUNCS = (None, np.add, np.multiply, np.maximum, np.minimum)
_OUTSIDE = [("IndexError", "an index is out of bounds")]


def _gathered(attributes, x, indices):
    return np.take_along_axis(x, indices, axis=-1)


@kernel("gather", _gathered, errors=_OUTSIDE)
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
    _UFUNCS[kind].at(out, (*grid[:-1], indices), y)
    return out


def product(a, b):
    kind = type_of(a)
    if kind.is_complex:
        return complex(
            real(a) * real(b) - imag(a) * imag(b),
            real(a) * imag(b) + imag(a) * real(b),
        )
    return a and b if kind.is_bool else a * b


def larger(a, b):
    """NaN wins."""
    return a if a > b or a != a else b


def smaller(a, b):
    return a if a < b or a != a else b


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
        elif kind == 1:
            if type_of(x).is_bool:
                out[at] = out[at] or y[i]
            else:
                out[at] = out[at] + y[i]
        elif kind == 2:
            out[at] = product(out[at], y[i])
        elif kind == 3:
            if type_of(x).is_bool:
                out[at] = out[at] or y[i]
            else:
                out[at] = larger(out[at], y[i])
        elif type_of(x).is_bool:
            out[at] = out[at] and y[i]
        else:
            out[at] = smaller(out[at], y[i])
    return 0
