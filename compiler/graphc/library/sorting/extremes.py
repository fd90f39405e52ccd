# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions of extremes, and the largest few elements.

Numbers are compared as integers of the same order, whose maximum vector instructions find.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.library.sorting import SIGN, UNSIGNED, key_of, radix
from graphc.native.builtins import (
    cast,
    choose,
    evens,
    isnan,
    odds,
    positions,
    row,
    total,
    type_of,
    unrolled,
    view,
)

# Elements whose extreme is found before it is compared with that of others, in rows of up to twice BLOCK and
# in longer ones.
SHORT_BLOCK, BLOCK = 32, 128
# Rows of more than LONG doubles: numbers compared at a time, in enough registers that comparisons do not wait
# for each other; pairs that leave one of them; elements between which the extremes of the lanes are compared.
LANES, PAIRS, RUN, LONG = 16, 4, 512, 2048
SIGNED = {8: "i8", 16: "i16", 32: "i32", 64: "i64"}
# Bits of infinity; those of a NaN are more, apart from its sign.
INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}
POSITIVE = {bits: (1 << (bits - 1)) - 1 for bits in SIGNED}
# Up to here the largest elements are kept in order, one by one.
KEPT = 32


def signed_key(x, i, smallest):
    """A signed integer that is largest for the largest (or smallest) number; not for NaN."""
    kind = type_of(x)
    bits = view(x, SIGNED[kind.bits])[i]
    if kind.is_float:
        key = bits ^ ((bits >> (kind.bits - 1)) & POSITIVE[kind.bits])
    elif kind.is_integer and kind.signed:
        key = bits
    else:
        key = bits ^ SIGN[kind.bits]
    if smallest:
        return ~key
    return key


def _extreme(attributes, x):
    return (np.argmin if attributes["smallest"] else np.argmax)(x, axis=-1)


@kernel("arg_extreme", _extreme, errors=[("ValueError", "an empty axis has no extreme")])
def arg_extreme(x, out, n, *, smallest):
    if n == 0:
        return 1
    if type_of(x).is_float and type_of(x).bits == 64 and n > LONG:
        return long_extreme(x, out, n, smallest)
    return ordered_extreme(x, out, n, smallest)


def beyond(a, b, smallest):
    if smallest:
        return a < b
    return a > b


def long_extreme(x, out, n, smallest):
    """Compares numbers as they are: AVX2 has the maximum of doubles, but not that of long integers."""
    best = x[0]
    place = 0
    if isnan(best):
        out[0] = 0
        return 0
    whole = n - n % LANES
    first = 0
    while first < whole:
        last = min(first + RUN, whole)
        top = row(x, first, LANES)
        # NaN in the lanes where one was.
        seen = top
        for i in range(first + LANES, last, LANES):
            here = row(x, i, LANES)
            top = choose(beyond(here, top, smallest), here, top)
            seen = choose(here == here, seen, here)
        if total(choose(seen == seen, choose(beyond(top, best, smallest), 1.0, 0.0), 1.0)) > 0:
            if total(choose(seen == seen, 0.0, 1.0)) > 0:
                out[0] = first_nan(x, first)
                return 0
            best = lane_extreme(top, smallest)
            place = first
        first = last
    for i in range(whole, n):
        if isnan(x[i]):
            out[0] = i
            return 0
        if beyond(x[i], best, smallest):
            best = x[i]
            place = i
    while place < n - 1 and x[place] != best:
        place += 1
    out[0] = place
    return 0


def lane_extreme(top, smallest):
    for _ in unrolled(PAIRS):
        a = evens(top, top)
        b = odds(top, top)
        top = choose(beyond(a, b, smallest), a, b)
    return total(choose(positions(LANES) == 0, top, 0.0))


def ordered_extreme(x, out, n, smallest):
    best = signed_key(x, 0, smallest)
    place = 0
    block = BLOCK if n > 2 * BLOCK else SHORT_BLOCK
    first = 0
    while first < n:
        last = min(first + block, n)
        if type_of(x).is_float:
            bits = view(x, SIGNED[type_of(x).bits])
            # The largest number that is not negative, and the one furthest below zero.
            above = bits[first]
            below = cast(bits[first], UNSIGNED[type_of(x).bits])
            for i in range(first, last):
                above = max(above, bits[i])
                below = max(below, cast(bits[i], UNSIGNED[type_of(x).bits]))
            if above > INFINITY[type_of(x).bits] or below > INFINITY[type_of(x).bits] | SIGN[type_of(x).bits]:
                out[0] = first_nan(x, first)
                return 0
            top = above
            if smallest:
                top = cast(below, SIGNED[type_of(x).bits]) ^ SIGN[type_of(x).bits]
            if top < 0:
                # There is none on that side of zero.
                top = top_key(x, first, last, smallest)
        else:
            top = top_key(x, first, last, smallest)
        if top > best:
            best = top
            place = first
        first = last
    while signed_key(x, place, smallest) != best:
        place += 1
    if type_of(x).is_float:
        if x[place] == 0:
            # Zeros of both signs are equal, but have different keys.
            place = 0
            while x[place] != 0:
                place += 1
    out[0] = place
    return 0


def top_key(x, first, last, smallest):
    top = signed_key(x, first, smallest)
    for i in range(first, last):
        top = max(top, signed_key(x, i, smallest))
    return top


def first_nan(x, first):
    i = first
    while not isnan(x[i]):
        i += 1
    return i


def ranked(x, i, smallest):
    """A key that is largest for what `topk` returns first."""
    key = key_of(x, i, False)
    if smallest:
        return ~key
    return key


def keep_few(x, positions, keys, n, k, smallest):
    """Positions of the elements with the largest keys; these are kept in order."""
    count = 0
    for i in range(n):
        key = ranked(x, i, smallest)
        if count < k or key > keys[k - 1]:
            j = min(count, k - 1)
            while j > 0 and keys[j - 1] < key:
                keys[j] = keys[j - 1]
                positions[j] = positions[j - 1]
                j -= 1
            keys[j] = key
            positions[j] = i
            count = min(count + 1, k)


def sort_all(x, positions, words, n, k, smallest):
    order = view(words[2 * n :], "i64")
    for i in range(n):
        words[i] = ~cast(ranked(x, i, smallest), "u64")
        order[i] = i
    radix(words, order, words[n:], view(words[3 * n :], "i64"), n, 0, 8)
    for i in range(k):
        positions[i] = order[i]


def _top(attributes, x, k):
    if attributes["smallest"]:
        order = np.argsort(x, axis=-1, kind="stable")
    else:
        order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = order[..., : int(k)]
    return np.take_along_axis(x, order, -1), order


_FEWER = [("ValueError", "there are fewer elements than are asked for")]


@kernel("topk", _top, scratch=lambda sizes: sizes["n"] * 32, errors=_FEWER)
def topk(x, values, positions, scratch, n, k, *, smallest):
    if k > n or k < 0:
        return 1
    if k <= KEPT:
        if k > 0:
            keep_few(x, positions, view(scratch, UNSIGNED[type_of(x).bits]), n, k, smallest)
    else:
        sort_all(x, positions, view(scratch, "u64"), n, k, smallest)
    for i in range(k):
        values[i] = x[positions[i]]
    return 0
