# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text where the lifetimes of buffers begin and end, plain and poisoned.

Poisoned code fills memory with 0xFF, a NaN of every floating-point type, and puts 64 bytes of another pattern
on either side of a workspace, which are compared at the end of the call.
"""

from __future__ import annotations

from graphc.library.memory.arena import FILL, HEADER

_MEMREF = "{ptr, ptr, i64, [1 x i64], [1 x i64]}"

# Where a lifetime begins, and where it ends, there is no code: an empty piece of assembly gives the pointer.
# It aliases no other pointer, which holds from there to the piece of assembly that takes it back.
_ACCESS = f"""
define {_MEMREF} @graphc_buffer(i64 %workspace, i64 %offset, i64 %bytes) alwaysinline nounwind {{
  %address = add i64 %workspace, %offset
  %place = inttoptr i64 %address to ptr
  %memory = call noalias align 64 ptr asm sideeffect "", "=r,0,~{{memory}}"(ptr %place) nounwind
FILL  %m0 = insertvalue {_MEMREF} poison, ptr %memory, 0
  %m1 = insertvalue {_MEMREF} %m0, ptr %memory, 1
  %m2 = insertvalue {_MEMREF} %m1, i64 0, 2
  %m3 = insertvalue {_MEMREF} %m2, i64 %bytes, 3, 0
  %m4 = insertvalue {_MEMREF} %m3, i64 1, 4, 0
  ret {_MEMREF} %m4
}}

define {_MEMREF} @graphc_planned_buffer(i64 %workspace, i64 %number, i64 %bytes) alwaysinline nounwind {{
  %block = inttoptr i64 %workspace to ptr
  %field = getelementptr i64, ptr %block, i64 2
  %memory = load i64, ptr %field
  %table = getelementptr i8, ptr %block, i64 {HEADER}
  %entry = getelementptr i64, ptr %table, i64 %number
  %offset = load i64, ptr %entry
  %result = call {_MEMREF} @graphc_buffer(i64 %memory, i64 %offset, i64 %bytes)
  ret {_MEMREF} %result
}}

define void @graphc_end(ptr %memory, i64 %bytes) alwaysinline nounwind {{
FILL  call void asm sideeffect "", "r,~{{memory}}"(ptr %memory) nounwind
  ret void
}}
"""

# Memory joins the chain of what the call gives back.
_LINK = """
define internal void @graphc_link(ptr %ctx, ptr %block, ptr %pool, i64 %bytes) alwaysinline nounwind {
  %head = load ptr, ptr %ctx
  %f3 = getelementptr i64, ptr %block, i64 3
  %f4 = getelementptr i64, ptr %block, i64 4
  store ptr %head, ptr %block
  store ptr %pool, ptr %f3
  store i64 %bytes, ptr %f4
  store ptr %block, ptr %ctx
PAINT  ret void
}
"""

# 0xFF everywhere, and something else on both sides.
_PAINT = """  %f2 = getelementptr i64, ptr %block, i64 2
  %address = load i64, ptr %f2
  %memory = inttoptr i64 %address to ptr
  %front = getelementptr i8, ptr %memory, i64 -64
  %back = getelementptr i8, ptr %memory, i64 %bytes
  call void @llvm.memset.p0.i64(ptr %front, i8 197, i64 64, i1 false)
  call void @llvm.memset.p0.i64(ptr %memory, i8 -1, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %back, i8 197, i64 64, i1 false)
"""

PLAIN = _LINK.replace("PAINT", "")

POISONED = (
    _LINK.replace("PAINT", _PAINT)
    + """
define internal i1 @graphc_is_canary(ptr %place) nounwind {
begin:
  br label %test
test:
  %i = phi i64 [0, %begin], [%i1, %next]
  %more = icmp slt i64 %i, 64
  br i1 %more, label %look, label %yes
look:
  %p = getelementptr i8, ptr %place, i64 %i
  %byte = load i8, ptr %p
  %good = icmp eq i8 %byte, 197
  br i1 %good, label %next, label %no
next:
  %i1 = add i64 %i, 1
  br label %test
yes:
  ret i1 true
no:
  ret i1 false
}

define i64 @graphc_intact(ptr %ctx) nounwind {
; 0, or the status for memory that was written next to a workspace.
begin:
  %head = load ptr, ptr %ctx
  br label %test
test:
  %block = phi ptr [%head, %begin], [%following, %next]
  %none = icmp eq ptr %block, null
  br i1 %none, label %good, label %look
look:
  %following = load ptr, ptr %block
  %f1 = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %f1
  %arena = icmp eq i64 %capacity, 0
  br i1 %arena, label %next, label %compare
compare:
  %f2 = getelementptr i64, ptr %block, i64 2
  %f4 = getelementptr i64, ptr %block, i64 4
  %memory = load ptr, ptr %f2
  %bytes = load i64, ptr %f4
  %front = getelementptr i8, ptr %memory, i64 -64
  %back = getelementptr i8, ptr %memory, i64 %bytes
  %before = call i1 @graphc_is_canary(ptr %front)
  %behind = call i1 @graphc_is_canary(ptr %back)
  %both = and i1 %before, %behind
  br i1 %both, label %next, label %bad
next:
  br label %test
good:
  ret i64 0
bad:
  ret i64 -2
}
"""
)

# Without workspaces there is nothing that could be damaged.
INTACT = """
define i64 @graphc_intact(ptr %ctx) nounwind {
  ret i64 0
}
"""


def places_ir(*, poison: bool = False) -> str:
    """What begins and ends lifetimes, for the module of a kernel with workspaces.

    Only where it is inlined does LLVM see that buffers do not overlap, without which it vectorises no loop
    that reads and writes many.
    """
    return _ACCESS.replace("FILL", FILL if poison else "")
