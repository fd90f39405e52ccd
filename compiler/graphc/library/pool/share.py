# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges that the thread pool divides among threads.

* `graphc_share(body, frame, lower, upper, cost, alignment)` calls `body(frame, first, past)` for ranges that
  cover lower..upper, several for each thread, multiples of the alignment but for the last. `cost` is the time
  of one position in picoseconds. With one thread, or not enough work for two ranges, there is one call.
* `graphc_share_short(body, frame, count, cost)` is for regions that are shorter than the time to wake a
  thread; ranges cover 0..count, which takes `cost` picoseconds in all. The steps of a loop that each multiply
  a vector with the same matrix are such regions: worth sharing with workers that still look for work after
  the step before, not worth waking any. So regions are done alone while all workers sleep, until that has
  taken ten times as long as calling them; the region after that calls them. A loop has their help from then
  on, and single calls lose at most a tenth.
"""
# mypy: ignore-errors

from __future__ import annotations

from graphc.library.pool.region import parallel, region, thread_count, word
from graphc.native.builtins import (
    address,
    at,
    atomic_load,
    atomic_store,
    cast,
    choose,
    function,
    inlined,
    invoke,
    local,
    view,
)

# The least work of a range in picoseconds, and the ranges for each thread: more of them balance the load,
# fewer keep neighbouring memory together.
LEAST, RANGES = 8_000_000, 4
# Picoseconds of short regions done alone before workers are called for the next one: ten times what that
# costs.
CALL_AFTER = 100_000_000


@inlined
def described(body, frame, lower, upper, size):
    """The description that a chunk is given."""
    task = local(5, "i64")
    task[0] = address(body)
    task[1] = address(frame)
    task[2] = lower
    task[3] = upper
    task[4] = size
    return view(task, "u8")


def do_range(given, i):
    """A chunk: the range of this number."""
    task = view(given, "i64")
    first = task[2] + task[4] * i
    invoke(at(task[0], "u8"), at(task[1], "u8"), first, min(first + task[4], task[3]))


def share(body, frame, lower, upper, cost, alignment):
    """Calls a function for ranges; the smallest size is a multiple of the alignment."""
    threads = cast(thread_count(), "u64")
    extent = upper - lower
    size = (max(extent // (threads * RANGES), LEAST // cost) // alignment + 1) * alignment
    last = (extent - 1) // size
    if last > 0 and threads > 1:
        task = described(body, frame, lower, upper, size)
        parallel(function(do_range, "u8*", "i64"), task, cast(last + 1, "i64"), cast(threads, "i64"))
    else:
        invoke(body, frame, lower, upper)


def share_short(body, frame, count, cost):
    """As `share`, for regions that are shorter than the time to wake a thread."""
    threads, calls = cast(thread_count(), "u64"), False
    helpers = cast(0, "u64")
    if threads > 1:
        workers = atomic_load(word("graphc_pool_workers"), 0, "monotonic")
        asleep = atomic_load(word("sleeping"), 0, "monotonic")
        if workers > asleep:
            helpers = cast(workers - asleep, "u64")
        else:
            before = cast(atomic_load(word("unshared"), 0, "monotonic"), "u64")
            calls = before + cost > CALL_AFTER
            atomic_store(word("unshared"), 0, choose(calls, 0, before + cost), "monotonic")
    if helpers == 0 and not calls:
        invoke(body, frame, cast(0, "i64"), count)
        return
    most = threads if calls else min(helpers + 1, threads)
    size = (count + most - 1) // most
    chunks = (count - 1) // size + 1
    task = described(body, frame, 0, count, size)
    region(function(do_range, "u8*", "i64"), task, cast(chunks, "i64"), cast(most, "i64"), calls)
