# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts and sums by number (bincount) and by interval (histogram)."""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.sorting.searching import place_of
from graphc.native.builtins import cast


def _length(attributes, numbers):
    if numbers.size and numbers.min() < 0:
        raise ValueError("bincount: a number is negative")
    return np.max(numbers, axis=-1, initial=-1) + 1


@kernel("bin_length", _length, errors=[("ValueError", "a number is negative (bincount)")])
def bin_length(numbers, out, n):
    largest, smallest = -1, 0
    for i in range(n):
        largest = max(largest, numbers[i])
        smallest = min(smallest, numbers[i])
    out[0] = largest + 1
    return 1 if smallest < 0 else 0


_OUTSIDE = [("ValueError", "a number is out of bounds")]


def add_by_number(numbers, weights, out, n, k, weighted):
    """Adds to the elements that have the numbers; without weights, 1."""
    for j in range(k):
        out[j] = 0
    for i in range(n):
        at = numbers[i]
        if at < 0 or at >= k:
            return 1
        out[at] += weights[i] if weighted else 1
    return 0


def _counts(attributes, numbers, count):
    return np.bincount(numbers, minlength=int(count))


@kernel("count_bins", _counts, errors=_OUTSIDE)
def count_bins(numbers, out, n, k):
    return add_by_number(numbers, numbers, out, n, k, False)


def _sums(attributes, numbers, weights, count):
    out = np.zeros(int(count), weights.dtype)
    np.add.at(out, numbers, weights)
    return out


@kernel("sum_bins", _sums, errors=_OUTSIDE)
def sum_bins(numbers, weights, out, n, k):
    return add_by_number(numbers, weights, out, n, k, True)


def bin_of(value, edges, last, k, low, scale, uniform):
    """The bin of a value, or k if it has none. The last bin has both its edges."""
    if not (value >= edges[0] and value <= last):
        return k
    if uniform:
        at = min(cast((value - low) * scale, "i64"), k - 1)
        # Rounding can lead to a neighbour.
        if value < edges[at]:
            at -= 1
        elif at + 1 < k and value >= edges[at + 1]:
            at += 1
        return at
    return max(min(place_of(value, edges, k, True) - 1, k - 1), 0)


def add_by_bin(x, weights, edges, last, out, n, k, uniform, weighted):
    """Adds to the bins that have the elements; without weights, 1."""
    for j in range(k):
        out[j] = 0
    low = edges[0]
    scale = k / (last - low)
    for i in range(n):
        at = bin_of(x[i], edges, last, k, low, scale, uniform)
        if at < k:
            out[at] += weights[i] if weighted else 1


@kernel("histogram", lambda attributes, x, edges, last: np.histogram(x, np.append(edges, last))[0])
def histogram(x, edges, last, out, n, k, *, uniform):
    add_by_bin(x, x, edges, last[0], out, n, k, uniform, False)


def _weighted(attributes, x, weights, edges, last):
    return np.histogram(x, np.append(edges, last), weights=weights)[0]


@kernel("weighted_histogram", _weighted)
def weighted_histogram(x, weights, edges, last, out, n, k, *, uniform):
    add_by_bin(x, weights, edges, last[0], out, n, k, uniform, True)
