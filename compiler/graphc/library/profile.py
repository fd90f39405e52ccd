# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text of what measured kernels call (see `graphc.passes.buffer.profile_operations`).

Counters and the slot that time is charged to are global to the code, not atomic: calls at the same time, on
several threads, mix.

Text, and not in the kernel language: the clock is read by assembly.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphc.library.helpers import Helper, ProfileCall, of_kind

# The table: for each slot, ticks of its own and runs; and the clock.
EXPORTS = frozenset({"graphc_profile_data", "graphc_profile_clock"})

# A counter that runs at one rate and that programs may read.
_CLOCKS = {
    "x86_64": "call i64 @llvm.readcyclecounter()",
    "aarch64": 'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()',
}


def profile_ir(helpers: Iterable[Helper], triple: str) -> str:
    """Definitions of what a kernel calls of these; empty if it calls none.

    Args:
        helpers: what the kernel calls.
        triple: of the machine that code is made for.
    """
    called = of_kind(helpers, ProfileCall)
    if not called:
        return ""
    size = max(call.slots for call in called)
    return _TEXT.replace("SIZE", str(size)).replace("CLOCK", _CLOCKS[triple.partition("-")[0]])


_TEXT = """
@graphc_profile_table = internal global [SIZE x [2 x i64]] zeroinitializer
@graphc_profile_last = internal global i64 0
@graphc_profile_slot = internal global i64 0
declare i64 @llvm.readcyclecounter()
define i64 @graphc_profile_clock() nounwind {
  %now = CLOCK
  ret i64 %now
}
define ptr @graphc_profile_data() nounwind {
  ret ptr @graphc_profile_table
}
define internal void @graphc_profile_count(i64 %slot) nounwind {
  %runs = getelementptr [2 x i64], ptr @graphc_profile_table, i64 %slot, i64 1
  %old = load i64, ptr %runs
  %new = add i64 %old, 1
  store i64 %new, ptr %runs
  ret void
}
define void @graphc_profile_begin() nounwind {
  %now = CLOCK
  store i64 %now, ptr @graphc_profile_last
  store i64 0, ptr @graphc_profile_slot
  call void @graphc_profile_count(i64 0)
  ret void
}
define void @graphc_profile_leave(i64 %slot) nounwind {
  %now = CLOCK
  %last = load i64, ptr @graphc_profile_last
  %elapsed = sub i64 %now, %last
  %charged = load i64, ptr @graphc_profile_slot
  %ticks = getelementptr [2 x i64], ptr @graphc_profile_table, i64 %charged
  %old = load i64, ptr %ticks
  %new = add i64 %old, %elapsed
  store i64 %new, ptr %ticks
  store i64 %now, ptr @graphc_profile_last
  store i64 %slot, ptr @graphc_profile_slot
  ret void
}
define void @graphc_profile_enter(i64 %slot) nounwind {
  call void @graphc_profile_leave(i64 %slot)
  call void @graphc_profile_count(i64 %slot)
  ret void
}
"""
