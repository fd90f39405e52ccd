# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefixes and orders by the threads of a block: the kernels for devices beside those of one core.

They are written in the notation of devices (`passes/gpu/_notation.py`), which they get as `of`; buffers are
in shared memory. `passes/gpu/gpu_running.py` and `gpu_sort.py` choose, fill and launch.

Sources: G. Blelloch, "Prefix sums and their applications" (1990); K. Batcher, "Sorting networks and their
applications" (1968); A. Adinets, D. Merrill, "Onesweep: a faster least significant digit radix sort for GPUs"
(2022), for ranks of a warp.
"""
# mypy: ignore-errors

from __future__ import annotations

# Bits of a place in a tile.
_RANK = 16


def prefix(of, values, running, buffers, most):
    """The prefix over all threads before one, and the total over all; all threads of the block get here.

    The block has threads along x only, whole warps. Warps are combined by shuffles, and the block through
    shared memory.

    Args:
        of: the notation.
        values: of the thread, a tuple of numbers.
        running: has `neutral()`, and `combine(left, right)`, which need not commute.
        buffers: of a number for each warp, one for each number of the tuple.
        most: threads of the block.
    """

    def chosen(condition, some, others):
        return [of.select(condition, x, y) for x, y in zip(some, others, strict=True)]

    def in_warp(values, lane, width):
        """Inclusive prefix over the first lanes."""
        offset = 1
        while offset < width:
            others = [of.shuffled(value, offset, "up") for value in values]
            exists = lane >= offset
            values = chosen(exists, running.combine(others, values), values)
            offset *= 2
        return values

    def of_lane(values, lane):
        """The values of one lane, for all lanes of the warp."""
        return [of.shuffled(value, lane, "idx") for value in values]

    thread = of.thread_id()
    lane, warp = thread % of.WARP, thread // of.WARP
    own = in_warp(values, lane, of.WARP)
    with of.when(lane.equals(of.WARP - 1)):
        for value, buffer in zip(own, buffers, strict=True):
            buffer[warp] = value
    of.barrier()
    count = of.block_dim() // of.WARP
    within = lane.below(count)
    place = of.select(within, lane, 0)
    found = chosen(within, [buffer[place] for buffer in buffers], running.neutral())
    warps = in_warp(found, lane, most // of.WARP)
    of.barrier()
    total, previous = of_lane(warps, count - 1), of_lane(warps, of.larger(warp - 1, 0))
    inside = chosen(lane.equals(0), running.neutral(), [of.shuffled(value, 1, "up") for value in own])
    return running.combine(chosen(warp.equals(0), running.neutral(), previous), inside), total


def ranks(of, digits, own, bits, warps, room, before):
    """Places of items in their tile when it is in order of digits; equal ones stay in their order.

    Of the lanes of a warp that have the same digit the first one takes room for all.

    Args:
        of: the notation.
        digits: words, of the thread's items.
        own: the thread's share of all digits, side by side.
        bits: of a digit.
        warps: of the block.
        room: of a word for each digit of each warp.
        before: sums over the threads before one, of a number.

    Returns:
        the places; and of the thread's digits where each begins, and how often it comes.
    """
    count, low, thread = 1 << bits, (1 << _RANK) - 1, of.thread_id()
    for turn in range(len(own) * warps):
        place = thread + turn * (count // len(own))
        # Which count it is goes with it, so that threads need not remember that.
        room[place] = of.word(place) << _RANK
    of.barrier()
    lower, row = of.lanes_before(), of.word(thread // of.WARP * count)
    found = []
    for digit in digits:
        alike, place = of.lanes_alike(digit, bits), row + digit
        earlier = of.bits_set(alike & lower)
        rank = room[of.as_index(place)] + earlier
        of.warp_barrier()
        with of.when(earlier.equals(0)):
            room[of.as_index(place)] = rank + of.bits_set(alike)
        of.warp_barrier()
        found.append(rank)
    of.barrier()
    counts = []
    for digit in own:
        taken = [room[digit + w * count] & low for w in range(warps)]
        counts.append(sum(taken[1:], taken[0]))
    begin, begins = before(sum(counts[1:], counts[0])), []
    for digit, often in zip(own, counts, strict=True):
        begins.append(begin)
        place = begin
        for w in range(warps):
            # Read again instead of kept, as registers are few.
            count_of_warp = room[digit + w * count] & low
            room[digit + w * count] = place
            place = place + count_of_warp
        begin = begin + often
    of.barrier()
    placed = [(rank & low) + room[of.as_index(rank >> _RANK)] for rank in found]
    return placed, begins, counts


def network(of, items, size, levels, after):
    """Sorts items by Batcher's bitonic network: upwards or downwards, in turns of twice a level's size.

    Args:
        of: the notation.
        items: arrays with the parts of items.
        size: how many there are, two to the power of `levels`.
        levels: of the network.
        after: whether an item comes after another one.
    """

    def exchange(pair, level, distance):
        """Puts two items in order."""
        step = of.as_index(1) << distance
        low = pair & (step - 1)
        first = ((pair - low) << 1) + low
        second = first + step
        upwards = ((first >> (level + 1)) & 1).equals(0)
        a, b = ([part[place] for part in items] for place in (first, second))
        wrong = of.select(upwards, after(a, b), after(b, a))
        for place, one, other in ((first, b, a), (second, a, b)):
            for part, x, y in zip(items, one, other, strict=True):
                part[place] = of.select(wrong, x, y)

    with of.span(levels) as level, of.span(level + 1) as inner:
        with of.share(size >> 1) as pair:
            exchange(pair, level, level - inner)
        of.barrier()
