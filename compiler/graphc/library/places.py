# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places buffers with known sizes and lifetimes in one block of memory.

Buffers are placed one after the other, each in the smallest gap between those already placed that live at the
same time; where no gap is large enough it goes after them. This is done for several orders, of which the one
that needs least memory counts: by size, by size times length of life, by length of life, by end of life, the
largest first. `graphc.library.workspace` has the same algorithm in machine code, for sizes that are
known at run time only: both give the same offsets.

Source: "greedy by size" of Y. Pisarchyk and J. Lee, "Efficient memory management for deep neural net
inference" (2020), with more orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypedDict

ALIGNMENT = 64
# With more buffers only the first order is tried: the time grows with the square of their number.
MOST_FOR_ALL_ORDERS = 400


class Interval(NamedTuple):
    """The positions of the first and the last operation that use a buffer; both belong to its lifetime."""

    first: int
    last: int

    def overlaps(self, other: Interval) -> bool:
        """True if some operation belongs to both lifetimes."""
        return self.first <= other.last and other.first <= self.last


class Planned(TypedDict):
    """Contents of a workspace that `planned_bytes` reads: the sizes that its layout depends on, and its
    bytes.
    """

    keys: list[list[int]]
    peak: int


def planned_bytes(records: Iterable[Mapping[str, list[Planned]]]) -> int | None:
    """The bytes of all workspaces; None where some depend on sizes that are known in calls only."""
    workspaces = [workspace for record in records for workspace in record["workspaces"]]
    if any(workspace["keys"] != [[]] for workspace in workspaces):
        return None
    return sum(workspace["peak"] for workspace in workspaces)


class Layout(NamedTuple):
    """An offset for each buffer, and the size of the whole."""

    offsets: list[int]
    size: int


def pack(sizes: Sequence[int], lifetimes: Sequence[Interval]) -> Layout:
    """Places buffers so that those with overlapping lifetimes share no memory.

    Args:
        sizes: of the buffers, in any unit; offsets are in the same.
        lifetimes: one interval for each.
    """
    numbers = range(len(sizes))
    lengths = [life.last - life.first + 1 for life in lifetimes]
    orders = [lambda i: -sizes[i]]
    if len(sizes) <= MOST_FOR_ALL_ORDERS:
        orders += [lambda i: -sizes[i] * lengths[i], lambda i: -lengths[i], lambda i: -lifetimes[i].last]
    layouts = [_place(sorted(numbers, key=order), sizes, lifetimes) for order in orders]
    return min(layouts, key=lambda layout: layout.size)


def _place(order: Sequence[int], sizes: Sequence[int], lifetimes: Sequence[Interval]) -> Layout:
    offsets = [0] * len(sizes)
    placed: list[int] = []  # by offset
    size = 0
    for i in order:
        offsets[i] = _best_gap(i, sizes, lifetimes, offsets, placed)
        at = len(placed)
        while at and offsets[placed[at - 1]] > offsets[i]:
            at -= 1
        placed.insert(at, i)
        size = max(size, offsets[i] + sizes[i])
    return Layout(offsets, size)


def _best_gap(
    i: int, sizes: Sequence[int], lifetimes: Sequence[Interval], offsets: list[int], placed: list[int]
) -> int:
    """The offset of the smallest gap that holds buffer `i`, or after all that live at the same time."""
    end, best, smallest = 0, -1, 0
    for j in placed:
        if not lifetimes[i].overlaps(lifetimes[j]):
            continue
        gap = offsets[j] - end
        if gap >= sizes[i] and (best < 0 or gap < smallest):
            best, smallest = end, gap
        end = max(end, offsets[j] + sizes[j])
    return end if best < 0 else best


def first_fit(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The lowest aligned offset at which a size fits between intervals (begin and end), or after them."""
    offset = 0
    for begin, end in sorted(taken):
        if begin - offset >= size:
            break
        offset = max(offset, aligned(end))
    return offset


def aligned(size: int) -> int:
    """A size rounded up, so that what follows it is aligned."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def live_bytes(sizes: Sequence[int], lifetimes: Sequence[Interval]) -> int:
    """The most that is alive at one operation: no layout is smaller."""
    changes: dict[int, int] = {}
    for size, interval in zip(sizes, lifetimes, strict=True):
        changes[interval.first] = changes.get(interval.first, 0) + size
        changes[interval.last + 1] = changes.get(interval.last + 1, 0) - size
    most = alive = 0
    for position in sorted(changes):
        alive += changes[position]
        most = max(most, alive)
    return most
