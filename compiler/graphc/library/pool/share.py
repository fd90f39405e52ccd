# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the part of the thread pool that divides ranges among threads.

* `graphc_share(body, frame, lower, upper, cost, alignment)` calls `body(frame, first, past)` for ranges that
  cover lower..upper, several for each thread, multiples of the alignment but for the last. `cost` is the time
  of one position in picoseconds. With one thread, or not enough work for two ranges, there is one call.
* `graphc_share_short(body, frame, count, cost)` is for regions that are shorter than the time to wake a
  thread; ranges cover 0..count, which takes `cost` picoseconds in all. The steps of a loop that each multiply
  a vector with the same matrix are such regions: worth sharing with workers that still look for work after
  the step before, not worth waking any. So regions are done alone while all workers sleep, until that has
  taken ten times as long as calling them; the region after that calls them. A loop has their help from then
  on, and single calls lose at most a tenth.

Text, as all of the pool: the kernel language has no atomic operations and no calls of addresses. The code is
compiled once, before it ships.
"""

from __future__ import annotations

_FIELDS = "".join(
    f"  %{name}_at = getelementptr %task, ptr %task, i64 0, i32 {number}\n"
    for number, name in enumerate(("frame", "lower", "upper", "size"), 1)
)


def _task(lower: str, upper: str) -> str:
    """Fills a task whose memory is there."""
    return f"""{_FIELDS}  store ptr %body, ptr %task
  store ptr %frame, ptr %frame_at
  store i64 {lower}, ptr %lower_at
  store i64 {upper}, ptr %upper_at
  store i64 %size, ptr %size_at
"""


POOL_SHARE = (
    """
%task = type { ptr, ptr, i64, i64, i64 }

define internal void @range(ptr %task, i64 %i) nounwind {
FIELDS  %body = load ptr, ptr %task
  %frame = load ptr, ptr %frame_at
  %lower = load i64, ptr %lower_at
  %upper = load i64, ptr %upper_at
  %size = load i64, ptr %size_at
  %offset = mul i64 %size, %i
  %first = add i64 %lower, %offset
  %next = add i64 %first, %size
  %past = call i64 @llvm.smin.i64(i64 %next, i64 %upper)
  call void %body(ptr %frame, i64 %first, i64 %past)
  ret void
}

define void @graphc_share(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %cost, i64 %alignment) nounwind {
entry:
  %task = alloca %task, align 8
  %threads = call i64 @graphc_thread_count()
  %extent = sub i64 %upper, %lower
  %ranges = mul i64 %threads, RANGES
  %fair = udiv i64 %extent, %ranges
  %least = udiv i64 LEAST, %cost
  %wanted = call i64 @llvm.smax.i64(i64 %fair, i64 %least)
  %blocks = udiv i64 %wanted, %alignment
  %more = add i64 %blocks, 1
  %size = mul i64 %more, %alignment
  %rest = sub i64 %extent, 1
  %last = udiv i64 %rest, %size
  %many = icmp ugt i64 %last, 0
  %several = icmp ugt i64 %threads, 1
  %both = and i1 %many, %several
  br i1 %both, label %share, label %alone
alone:
  call void %body(ptr %frame, i64 %lower, i64 %upper)
  ret void
share:
TASK_OF_RANGE  %count = add i64 %last, 1
  call void @graphc_parallel(ptr @range, ptr %task, i64 %count, i64 %threads)
  ret void
}

@unshared = internal global i64 0, align 64

define void @graphc_share_short(ptr %body, ptr %frame, i64 %count, i64 %cost) nounwind {
entry:
  %task = alloca %task, align 8
  %threads = call i64 @graphc_thread_count()
  %several = icmp ugt i64 %threads, 1
  br i1 %several, label %look, label %alone
look:
  %workers = load atomic i64, ptr @graphc_pool_workers monotonic, align 8
  %asleep = load atomic i64, ptr @sleeping monotonic, align 64
  %awake = icmp sgt i64 %workers, %asleep
  br i1 %awake, label %share, label %cold
cold:
  %before = load atomic i64, ptr @unshared monotonic, align 64
  %sum = add i64 %before, %cost
  %due = icmp ugt i64 %sum, CALL_AFTER
  %after = select i1 %due, i64 0, i64 %sum
  store atomic i64 %after, ptr @unshared monotonic, align 64
  br i1 %due, label %share, label %alone
alone:
  call void %body(ptr %frame, i64 0, i64 %count)
  ret void
share:
  %calls = phi i1 [ false, %look ], [ true, %cold ]
  %helpers = sub i64 %workers, %asleep
  %present = add i64 %helpers, 1
  %able = select i1 %calls, i64 %threads, i64 %present
  %most = call i64 @llvm.smin.i64(i64 %able, i64 %threads)
  %less = sub i64 %most, 1
  %padded = add i64 %count, %less
  %size = udiv i64 %padded, %most
  %rest = sub i64 %count, 1
  %last = udiv i64 %rest, %size
  %chunks = add i64 %last, 1
TASK_OF_COUNT  call void @region(ptr @range, ptr %task, i64 %chunks, i64 %most, i1 %calls)
  ret void
}
""".replace("FIELDS", _FIELDS)
    .replace("TASK_OF_RANGE", _task("%lower", "%upper"))
    .replace("TASK_OF_COUNT", _task("0", "%count"))
)
