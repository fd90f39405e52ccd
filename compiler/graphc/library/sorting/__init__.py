# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting: every number becomes an unsigned integer of the same order, and these are sorted by their digits.

A few elements are inserted one by one. More of them go to NumPy's sort, which uses vector instructions, and
many to a radix sort (least significant byte first), whose time grows with n only; measured against each
other on cores with AVX-512. On some processors NumPy's sort is the faster one at every size; there, numbers
of 32 and 64 bits are sorted as they are, unless some are NaN or -0.0, whose place keys decide. The order of
positions is stable: they are sorted by digits of their keys, or NumPy sorts words that begin with a key and
end with its position. Complex numbers are merged by comparison. NaN comes last.
"""
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from graphc.library import kernel
from graphc.native.builtins import call, cast, imag, isnan, local, real, type_of, view
from graphc_runtime.numpy_sort import available, quickest

UNSIGNED = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
SIGN = {bits: 1 << (bits - 1) for bits in UNSIGNED}
# Up to here elements are inserted one by one.
FEW = 24
# Ties of the first bits of keys are inserted up to here.
TIES = 64
# From here a radix sort is faster than NumPy's, by the bits of the keys; without NumPy's it is used at once.
MANY = {8: FEW, 16: 512, 32: 1024, 64: 2048} if available() else dict.fromkeys((8, 16, 32, 64), FEW)
if quickest():
    MANY |= {32: 1 << 62, 64: 1 << 62}
# Up to here positions fit into a byte; 0 without NumPy's sort.
SHORT = 256 if available() else 0
# From here pairs of a short key and its position are sorted by the bytes of the key.
PAIRS = MANY[64] if quickest() else SHORT + 1
SYMBOLS = {bits: f"numpy_sort_uint{bits}" for bits in (8, 16, 32, 64)}
# Whether numbers are sorted as they are, by their bits, and what sorts them.
DIRECT = {8: False, 16: False, 32: quickest(), 64: quickest()}
PLAIN = {
    f"{kind[0]}{bits}": f"numpy_sort_{kind}{bits}" for kind in ("float", "int", "uint") for bits in (32, 64)
}


def key_of(x, i, exact):
    """An unsigned integer in the order of the numbers; `exact` keeps -0.0 before 0.0."""
    kind = type_of(x)
    unsigned = UNSIGNED[kind.bits]
    bits = view(x, unsigned)[i]
    if kind.is_float:
        if not exact:
            bits = cast(0, unsigned) if bits == SIGN[kind.bits] else bits
        # Of a negative number all bits are flipped, of another one the sign.
        key = bits ^ ((cast(0, unsigned) - (bits >> (kind.bits - 1))) | SIGN[kind.bits])
        return cast(-1, unsigned) if isnan(x[i]) else key
    if kind.is_integer and kind.signed:
        return bits ^ SIGN[kind.bits]
    return bits


def restore(out, i):
    """The number of a key that stands in its place."""
    kind = type_of(out)
    bits = view(out, UNSIGNED[kind.bits])
    if kind.is_float:
        key = bits[i]
        bits[i] = key ^ (((key >> (kind.bits - 1)) - cast(1, UNSIGNED[kind.bits])) | SIGN[kind.bits])
    elif kind.is_integer and kind.signed:
        bits[i] = bits[i] ^ SIGN[kind.bits]


def insert(keys, positions, n):
    """Sorts keys, and if there are positions, these with them."""
    for i in range(1, n):
        key = keys[i]
        position = None if positions is None else positions[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            if positions is not None:
                positions[j] = positions[j - 1]
            j -= 1
        keys[j] = key
        if positions is not None:
            positions[j] = position


def digit(key, which):
    return cast((key >> cast(which * 8, type_of(key))) & 255, "i64")


def count_digits(keys, counts, n, low, high):
    """Histogram of the digits, by one look at the keys."""
    for i in range(low * 256, high * 256):
        counts[i] = 0
    for i in range(n):
        key = keys[i]
        for d in range(low, high):
            counts[d * 256 + digit(key, d)] += 1


def begin(counts):
    """Counts as positions where the keys of each digit begin."""
    at = 0
    for v in range(256):
        count = counts[v]
        counts[v] = at
        at += count


def distribute(source, from_, target, to, starts, n, d):
    for i in range(n):
        key = source[i]
        v = digit(key, d)
        at = starts[v]
        target[at] = key
        if to is not None:
            to[at] = from_[i]
        starts[v] = at + 1


def radix(keys, positions, other, others, n, low, high):
    """Sorts by the bytes low to high - 1 of keys; a byte that all have in common costs nothing.

    With positions these are what is sorted, and the keys are anything afterwards.
    """
    counts = local(2048, "i64")
    count_digits(keys, counts, n, low, high)
    moved = 0
    for d in range(low, high):
        starts = counts[d * 256 :]
        if starts[digit(keys[0], d)] == n:
            continue
        begin(starts)
        if moved == 0:
            distribute(keys, positions, other, others, starts, n, d)
        else:
            distribute(other, others, keys, positions, starts, n, d)
        moved = 1 - moved
    if moved == 1:
        for i in range(n):
            if positions is None:
                keys[i] = other[i]
            else:
                positions[i] = others[i]


def sort_short(keys, positions, pairs, n):
    """Sorts by all but the last byte, in whose place the position stands; then by insertion."""
    for i in range(n):
        pairs[i] = (keys[i] & cast(-256, "u64")) | cast(i, "u64")
    call(SYMBOLS[64], pairs, n, pairs, returns="i32")
    for i in range(n):
        positions[i] = cast(pairs[i] & 255, "i64")
        pairs[i] = keys[positions[i]]
    insert(pairs, positions, n)


def width(number):
    """The number of bits up to the highest that is set."""
    bits = 0
    while bits < 64 and (number >> cast(bits, "u64")) != 0:
        bits += 1
    return bits


def sort_ties(keys, positions, pairs, others, n, bits):
    """Sorts pairs that agree in all but their last bits, which are the position, by their keys."""
    first = 0
    while first < n:
        last = first + 1
        while last < n and ((pairs[last] ^ pairs[first]) >> cast(bits, "u64")) == 0:
            last += 1
        count = last - first
        if count > 1:
            run = view(others[first:], "u64")
            for i in range(count):
                run[i] = keys[positions[first + i]]
            if count <= TIES:
                insert(run, positions[first:], count)
            else:
                radix(run, positions[first:], pairs[first:], others[n + first :], count, 0, 8)
        first = last


def sort_pairs(keys, positions, pairs, others, n):
    """Sorts words of the first bits of a key, less those that all keys have in common, and of its position.

    Args:
        keys: unsigned integers.
        positions: the result.
        pairs: room for n words.
        others: room for twice as many.
        n: number of keys.
    """
    low = keys[0]
    high = keys[0]
    for i in range(n):
        low = min(low, keys[i])
        high = max(high, keys[i])
    bits = width(cast(n - 1, "u64"))
    used = width(high - low)
    # Bits of keys that are in a word; in words of fewer bits, keys are complete.
    left = max(used + bits - 64, 0)
    for i in range(n):
        pairs[i] = (((keys[i] - low) >> cast(left, "u64")) << cast(bits, "u64")) | cast(i, "u64")
    call(SYMBOLS[64], pairs, n, pairs, returns="i32")
    mask = (cast(1, "u64") << cast(bits, "u64")) - cast(1, "u64")
    for i in range(n):
        positions[i] = cast(pairs[i] & mask, "i64")
    if left > 0:
        sort_ties(keys, positions, pairs, others, n, bits)


def sort_keys(keys, other, n):
    """Sorts unsigned integers."""
    kind = type_of(keys)
    if n <= FEW:
        insert(keys, None, n)
    elif n < MANY[kind.bits]:
        call(SYMBOLS[kind.bits], keys, n, other, returns="i32")
    else:
        radix(keys, None, other, None, n, 0, kind.bits // 8)


def less(a, b):
    """True if a comes before b; NaN comes last, and parts of complex numbers are compared in turn."""
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
        # Without branches: nothing predicts comparisons of a search.
        return (a < b) | ((b != b) & (a == a))
    if kind.is_bool:
        return b & (not a)
    return a < b


def merge(x, source, target, first, middle, last):
    i, j = first, middle
    for k in range(first, last):
        if j >= last or (i < middle and not less(x[source[j]], x[source[i]])):
            target[k] = source[i]
            i += 1
        else:
            target[k] = source[j]
            j += 1


def merge_positions(x, positions, other, n):
    """Positions of complex numbers in their order."""
    for i in range(n):
        positions[i] = i
    width = 1
    moved = 0
    while width < n:
        for first in range((n + 2 * width - 1) // (2 * width)):
            at = first * 2 * width
            if moved == 0:
                merge(x, positions, other, at, min(at + width, n), min(at + 2 * width, n))
            else:
                merge(x, other, positions, at, min(at + width, n), min(at + 2 * width, n))
        moved = 1 - moved
        width *= 2
    if moved == 1:
        for i in range(n):
            positions[i] = other[i]


def sort_by_merging(x, out, positions, n):
    """Sorts complex numbers; there is room for twice as many positions."""
    merge_positions(x, positions, positions[n:], n)
    for i in range(n):
        out[i] = x[positions[i]]


def copy_plain(x, out, n):
    """Copies numbers, and tells whether all are ordered as NumPy's sort has them: neither NaN nor -0.0."""
    kind = type_of(x)
    bits = view(x, UNSIGNED[kind.bits])
    special = cast(0, UNSIGNED[kind.bits])
    for i in range(n):
        out[i] = x[i]
        if kind.is_float:
            special |= cast((bits[i] == SIGN[kind.bits]) | isnan(x[i]), UNSIGNED[kind.bits])
    return special == 0


def sort_by_keys(x, out, other, n):
    kind = type_of(x)
    keys = view(out, UNSIGNED[kind.bits])
    for i in range(n):
        keys[i] = key_of(x, i, True)
    sort_keys(keys, other, n)
    for i in range(n):
        restore(out, i)


@kernel("sort", lambda attributes, x: np.sort(x, axis=-1), scratch=lambda sizes: sizes["n"] * 16)
def sort(x, out, scratch, n):
    kind = type_of(x)
    if kind.is_complex:
        sort_by_merging(x, out, view(scratch, "i64"), n)
    elif DIRECT[kind.bits] and n > FEW and copy_plain(x, out, n):
        call(PLAIN[kind.name], out, n, scratch, returns="i32")
    else:
        sort_by_keys(x, out, view(scratch, UNSIGNED[kind.bits]), n)


def _argsorted(attributes, x):
    return np.argsort(x, axis=-1, kind="stable")


@kernel("argsort", _argsorted, scratch=lambda sizes: sizes["n"] * 32)
def argsort(x, out, scratch, n):
    kind = type_of(x)
    words = view(scratch, "u64")
    if kind.is_complex:
        merge_positions(x, out, view(scratch, "i64"), n)
    elif kind.bits == 64:
        for i in range(n):
            words[i] = key_of(x, i, False)
            out[i] = i
        if n <= FEW:
            insert(words, out, n)
        elif n <= SHORT:
            sort_short(words, out, words[n:], n)
        elif DIRECT[64]:
            sort_pairs(words, out, words[n:], view(words[2 * n :], "i64"), n)
        else:
            radix(words, out, words[n:], view(words[2 * n :], "i64"), n, 0, 8)
    else:
        # Key and position share a word, so that moving one moves both.
        pairs = view(out, "u64")
        for i in range(n):
            pairs[i] = (cast(key_of(x, i, False), "u64") << 32) | cast(i, "u64")
        if n <= FEW:
            insert(pairs, None, n)
        elif n < PAIRS:
            call(SYMBOLS[64], pairs, n, words, returns="i32")
        else:
            radix(pairs, None, words, None, n, 4, 4 + kind.bits // 8)
        for i in range(n):
            pairs[i] = pairs[i] & 4294967295
