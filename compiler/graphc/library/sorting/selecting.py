# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partial sorting: the element of a rank in its place, smaller ones before it, larger ones after.

Quickselect on the integer keys of `sorting`. Elements are divided without branches (each is exchanged, and
the place to exchange with moves by the comparison's result), because branches on random data cost more than
the moves. When pivots turn out badly the rest is sorted.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.sorting import (
    FEW,
    UNSIGNED,
    insert,
    key_of,
    merge_positions,
    radix,
    restore,
    sort_by_merging,
    sort_keys,
)
from graphc.native.builtins import cast, type_of, view


def median_of_three(a, b, c):
    return max(min(a, b), min(max(a, b), c))


def pivot_of(keys, n):
    """A key near the middle: the median of three medians of three."""
    step = n // 9
    return median_of_three(
        median_of_three(keys[0], keys[step], keys[2 * step]),
        median_of_three(keys[3 * step], keys[4 * step], keys[5 * step]),
        median_of_three(keys[6 * step], keys[7 * step], keys[n - 1]),
    )


def divide(keys, positions, n, pivot, equal):
    """Keys below the pivot (or equal to it) first, and positions with them; returns how many these are."""
    j = 0
    for i in range(n):
        key = keys[i]
        keys[i] = keys[j]
        keys[j] = key
        if positions is not None:
            position = positions[i]
            positions[i] = positions[j]
            positions[j] = position
        if equal:
            j += cast(key <= pivot, "i64")
        else:
            j += cast(key < pivot, "i64")
    return j


def select(keys, positions, other, others, n, rank):
    """Brings the key of a rank into its place; the others to the sides where they belong."""
    first, last = 0, n
    tries = 64
    while last - first > FEW:
        moved = None if positions is None else positions[first:]
        tries -= 1
        if tries == 0 and positions is None:
            sort_keys(keys[first:], other, last - first)
            return
        elif tries == 0:
            radix(keys[first:], moved, other, others, last - first, 0, 8)
            return
        pivot = pivot_of(keys[first:], last - first)
        below = divide(keys[first:], moved, last - first, pivot, False)
        if rank < first + below:
            last = first + below
        else:
            first += below
            moved = None if positions is None else positions[first:]
            same = divide(keys[first:], moved, last - first, pivot, True)
            if rank < first + same:
                return
            first += same
    insert(keys[first:], None if positions is None else positions[first:], last - first)


def rank_of(kth, r, n):
    """One of the ranks; negative ones count from the end."""
    return kth[r] + n if kth[r] < 0 else kth[r]


def inside(kth, n, k):
    """True if there are elements of all ranks."""
    for r in range(k):
        rank = rank_of(kth, r, n)
        if rank < 0 or rank >= n:
            return False
    return True


def ascending(kth, n, k):
    """True if ranks ascend."""
    for r in range(1, k):
        before = rank_of(kth, r - 1, n)
        if before > rank_of(kth, r, n):
            return False
    return True


def smallest_first(keys, n):
    """Exchanges the smallest key with the first."""
    best = keys[0]
    for i in range(n):
        best = min(best, keys[i])
    at = 0
    while keys[at] != best:
        at += 1
    keys[at] = keys[0]
    keys[0] = best


def select_ranks(x, kth, out, other, n, k):
    keys = view(out, UNSIGNED[type_of(x).bits])
    for i in range(n):
        keys[i] = key_of(x, i, True)
    if not ascending(kth, n, k):
        sort_keys(keys, other, n)
        k = 0
    done = -1
    for r in range(k):
        rank = rank_of(kth, r, n)
        # What lies after a rank that is in its place stays there.
        if rank == done + 1:
            smallest_first(keys[rank:], n - rank)
        elif rank > done:
            select(keys[done + 1 :], None, other, None, n - done - 1, rank - done - 1)
        done = rank
    for i in range(n):
        restore(out, i)


def select_positions(x, kth, out, words, n, k):
    for i in range(n):
        words[i] = cast(key_of(x, i, True), "u64")
        out[i] = i
    others = view(words[2 * n :], "i64")
    if k > 1:
        radix(words, out, words[n:], others, n, 0, 8)
    elif k == 1:
        select(words, out, words[n:], others, n, rank_of(kth, 0, n))


def _ranks(x, kth):
    return np.unique(kth.reshape(-1, kth.shape[-1])[0]) if kth.size else []


def _partitioned(attributes, x, kth):
    return np.partition(x, _ranks(x, kth), axis=-1) if kth.size else x.copy()


_OUTSIDE = [("ValueError", "a rank is out of bounds")]


@kernel("partition", _partitioned, scratch=lambda sizes: sizes["n"] * 16, errors=_OUTSIDE)
def partition(x, kth, out, scratch, n, k):
    if not inside(kth, n, k):
        return 1
    kind = type_of(x)
    if kind.is_complex:
        sort_by_merging(x, out, view(scratch, "i64"), n)
    else:
        select_ranks(x, kth, out, view(scratch, UNSIGNED[kind.bits]), n, k)
    return 0


def _argpartitioned(attributes, x, kth):
    if not kth.size:
        return np.broadcast_to(np.arange(x.shape[-1]), x.shape).copy()
    return np.argpartition(x, _ranks(x, kth), axis=-1)


@kernel("argpartition", _argpartitioned, scratch=lambda sizes: sizes["n"] * 24, errors=_OUTSIDE)
def argpartition(x, kth, out, scratch, n, k):
    if not inside(kth, n, k):
        return 1
    kind = type_of(x)
    if kind.is_complex:
        merge_positions(x, out, view(scratch, "i64"), n)
    else:
        select_positions(x, kth, out, view(scratch, "u64"), n, k)
    return 0
