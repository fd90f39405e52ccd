# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searching in sorted arrays, and the positions and elements that a mask selects."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.sorting import less
from graphc.native.builtins import cast, choose, view, word

# The product with a word of bytes has their sum in its last byte.
SUM_OF_BYTES = 0x0101010101010101


def _searched(attributes, x, values):
    side = "right" if attributes["right"] else "left"
    if x.ndim == 1:
        return np.searchsorted(x, values, side=side)
    out = np.empty(values.shape, np.int64)
    for place in np.ndindex(x.shape[:-1]):
        out[place] = np.searchsorted(x[place], values[place], side=side)
    return out


def place_of(value, x, n, right):
    """Insertion position among sorted values. One comparison halves the length, whatever its result: there is
    nothing to predict.
    """
    first, length = 0, n
    while length > 1:
        half = length >> 1
        if right:
            first = choose(less(value, x[first + half - 1]), first, first + half)
        else:
            first = choose(less(x[first + half - 1], value), first + half, first)
        length -= half
    if length == 1:
        if right:
            first += cast(not less(value, x[first]), "i64")
        else:
            first += cast(less(x[first], value), "i64")
    return first


def belongs(value, x, n, place, right):
    """True if a value goes to a place."""
    if right:
        return (place == 0 or not less(value, x[place - 1])) and (place == n or less(value, x[place]))
    return (place == 0 or less(x[place - 1], value)) and (place == n or not less(x[place], value))


@kernel("searchsorted", _searched)
def searchsorted(x, values, out, n, k, *, right):
    place = 0
    sorted_ = True
    for i in range(k):
        # Sorted values often go where the one before went. Whether they are sorted is asked now and then.
        if sorted_ or i & 15 == 0:
            sorted_ = belongs(values[i], x, n, place, right)
        if not sorted_:
            place = place_of(values[i], x, n, right)
        out[i] = place


@kernel("contained", lambda attributes, x, others: np.isin(x, others))
def contained(x, others, out, n, k):
    for i in range(n):
        place = place_of(x[i], others, k, False)
        out[i] = place < k and others[min(place, k - 1)] == x[i]


@kernel("count_true", lambda attributes, mask: np.count_nonzero(mask, axis=-1))
def count_true(mask, out, n):
    bytes_ = view(mask, "u8")
    total = 0
    for block in range(n // 128):
        # Sums of bytes, which do not overflow: at most 16.
        lanes = cast(0, "u64")
        for i in range(16):
            lanes += word(bytes_, block * 128 + i * 8)
        total += cast((lanes * cast(SUM_OF_BYTES, "u64")) >> 56, "i64")
    for i in range(n // 128 * 128, n):
        total += cast(bytes_[i], "i64")
    out[0] = total


def select(x, mask, out, n, k, positions):
    """Elements where a mask is true, or their positions: the first k."""
    bytes_ = view(mask, "u8")
    i, j = 0, 0
    # Eight elements at a time without branches, as long as all eight would fit.
    while i + 8 <= n and j + 8 <= k:
        if word(bytes_, i) != 0:
            for lane in range(8):
                out[j] = i + lane if positions else x[i + lane]
                j += cast(bytes_[i + lane], "i64")
        i += 8
    while i < n and j < k:
        out[j] = i if positions else x[i]
        j += cast(bytes_[i], "i64")
        i += 1


@kernel("flatnonzero", lambda attributes, mask, count: np.flatnonzero(mask))
def flatnonzero(mask, out, n, k):
    select(mask, mask, out, n, k, True)


@kernel("compress", lambda attributes, x, mask, count: x[mask])
def compress(x, mask, out, n, k):
    select(x, mask, out, n, k, False)


@kernel("repeat_positions", lambda attributes, counts, total: np.repeat(np.arange(counts.size), counts))
def repeat_positions(counts, out, n, k):
    j = 0
    for i in range(n):
        last = min(j + counts[i], k)
        while j < last:
            out[j] = i
            j += 1


# More elements than memory holds.
MOST = 1 << 48
_NEGATIVE = "a number of repetitions is negative"
_TOO_MANY = "the repetitions add up to more elements than memory holds"


def _length(attributes, counts):
    if (counts < 0).any():
        raise ValueError(f"repeat: {_NEGATIVE}")
    if sum(counts.ravel().tolist()) > MOST:
        raise ValueError(f"repeat: {_TOO_MANY}")
    return counts.sum(-1)


@kernel("repeat_length", _length, errors=[("ValueError", _NEGATIVE), ("ValueError", _TOO_MANY)])
def repeat_length(counts, out, n):
    total, smallest = 0, 0
    for i in range(n):
        smallest = min(smallest, counts[i])
        # Neither the sum of two numbers below the limit overflows, nor does it come below the limit again.
        total = min(total + min(counts[i], MOST + 1), MOST + 1)
    out[0] = total
    if smallest < 0:
        return 1
    return 2 if total > MOST else 0
