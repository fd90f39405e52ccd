# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places buffers at run time: the algorithm of `graphc.library.memory.places`.

Sizes are rounded up to the alignment. A row of the table is {first, last, units, key}: the lifetime of a
buffer, and its bytes as a multiple of one of the sizes.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.memory.places import ALIGNMENT, MOST_FOR_ALL_ORDERS
from graphc.native.builtins import inlined, seldom

NO_LIMIT = (1 << 63) - 1


@inlined
def size_of(table, sizes, i):
    """Bytes of a buffer."""
    return (table[4 * i + 2] * sizes[table[4 * i + 3]] + (ALIGNMENT - 1)) & -ALIGNMENT


@seldom
def weight(table, sizes, i, by):
    """What buffers are ordered by: 0 size, 1 size times length of life, 2 length of life, 3 end of life."""
    size, last = size_of(table, sizes, i), table[4 * i + 1]
    length = last - table[4 * i] + 1
    if by == 0:
        return size
    if by == 1:
        return size * length
    return length if by == 2 else last


@seldom
def pack(table, count, sizes, offsets, order):
    """Tries all orders, and goes back to the best; of equal ones to the first. Returns the size of all."""
    best, least = 0, NO_LIMIT
    orders = 1 if count > MOST_FOR_ALL_ORDERS else 4
    for by in range(orders):
        whole = place(table, count, sizes, offsets, order, by)
        if whole < least:
            best, least = by, whole
    if best != orders - 1:
        place(table, count, sizes, offsets, order, best)
    return least


@seldom
def place(table, count, sizes, offsets, order, by):
    """Places buffers in one of the orders, the largest weight first."""
    for i in range(count):
        heavy, to = weight(table, sizes, i, by), i
        while to > 0 and weight(table, sizes, order[to - 1], by) < heavy:
            order[to] = order[to - 1]
            to -= 1
        order[to] = i
    whole = 0
    # The first p buffers in `order` have their places, and are sorted by them.
    for p in range(count):
        b = order[p]
        size = size_of(table, sizes, b)
        offset = best_gap(table, p, sizes, offsets, order, b, size)
        offsets[b] = offset
        to = p
        while to > 0 and offsets[order[to - 1]] > offset:
            order[to] = order[to - 1]
            to -= 1
        order[to] = b
        whole = max(whole, offset + size)
    return whole


@inlined
def best_gap(table, placed, sizes, offsets, order, b, size):
    """The offset of the smallest gap for a buffer, or after all that live at the same time."""
    first, last = table[4 * b], table[4 * b + 1]
    end, best, least = 0, -1, NO_LIMIT
    for q in range(placed):
        other = order[q]
        if first <= table[4 * other + 1] and table[4 * other] <= last:
            gap = offsets[other] - end
            if gap >= size and gap < least:
                best, least = end, gap
            end = max(end, offsets[other] + size_of(table, sizes, other))
    return end if best < 0 else best
