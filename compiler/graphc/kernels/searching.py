# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searching in sorted arrays, and the positions and elements that a mask selects."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.kernels import kernel
from graphc.kernels.builtins import cast, imag, real, type_of, view, word


def less(a, b):
    """Whether a comes before b; NaN comes last."""
    kind = type_of(a)
    if kind.is_complex:
        if real(a) < real(b):
            return imag(a) == imag(a) or imag(b) != imag(b)
        if real(a) > real(b):
            return imag(b) != imag(b) and imag(a) == imag(a)
        if real(a) == real(b) or (real(a) != real(a) and real(b) != real(b)):
            return imag(a) < imag(b) or (imag(b) != imag(b) and imag(a) == imag(a))
        return real(b) != real(b)
    if kind.is_float:
        return a < b or (b != b and a == a)
    if kind.is_bool:
        return b and not a
    return a < b


def _searched(attributes, x, values):
    side = "right" if attributes["right"] else "left"
    if x.ndim == 1:
        return np.searchsorted(x, values, side=side)
    out = np.empty(values.shape, np.int64)
    for place in np.ndindex(x.shape[:-1]):
        out[place] = np.searchsorted(x[place], values[place], side=side)
    return out


@kernel("searchsorted", _searched)
def searchsorted(x, values, out, n, k, *, right):
    for i in range(k):
        value = values[i]
        first, length = 0, n
        # One comparison halves the length, whatever its result: nothing to predict.
        while length > 1:
            half = length >> 1
            if right:
                first += half if not less(value, x[first + half - 1]) else 0
            else:
                first += half if less(x[first + half - 1], value) else 0
            length -= half
        if length == 1:
            if right:
                first += cast(not less(value, x[first]), "i64")
            else:
                first += cast(less(x[first], value), "i64")
        out[i] = first


def _positions(attributes, mask, count):
    return np.flatnonzero(mask)


@kernel("flatnonzero", _positions)
def flatnonzero(mask, out, n, k):
    bytes_ = view(mask, "u8")
    i, j = 0, 0
    # Eight elements at a time without branches, as long as all eight would fit.
    while i + 8 <= n and j + 8 <= k:
        if word(bytes_, i) != 0:
            for lane in range(8):
                out[j] = i + lane
                j += cast(bytes_[i + lane], "i64")
        i += 8
    while i < n and j < k:
        out[j] = i
        j += cast(bytes_[i], "i64")
        i += 1


def _compressed(attributes, x, mask, count):
    return x[mask]


@kernel("compress", _compressed)
def compress(x, mask, out, n, k):
    bytes_ = view(mask, "u8")
    i, j = 0, 0
    while i + 8 <= n and j + 8 <= k:
        if word(bytes_, i) != 0:
            for lane in range(8):
                out[j] = x[i + lane]
                j += cast(bytes_[i + lane], "i64")
        i += 8
    while i < n and j < k:
        out[j] = x[i]
        j += cast(bytes_[i], "i64")
        i += 1


def _repeated(attributes, counts, total):
    return np.repeat(np.arange(counts.size), counts)


@kernel("repeat_positions", _repeated)
def repeat_positions(counts, out, n, k):
    j = 0
    for i in range(n):
        last = min(j + counts[i], k)
        while j < last:
            out[j] = i
            j += 1
