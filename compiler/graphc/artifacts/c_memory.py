# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the memory of functions that C calls: the caller's workspace, then the caller's allocator.

Kernels ask for memory as ever (`graphc.library.memory`); only where it comes from differs, and that nothing
is kept between calls. The context has four words more:

    10  first free byte of the workspace        12  the allocator (`graphc_allocator` of graphc.h)
    11  end of the workspace                    13  its beginning
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.library.memory.access import PLAIN
from graphc.library.memory.arena import HEADER, arena_ir
from graphc.library.memory.packing import PACK
from graphc.library.memory.workspace import WorkspaceTable, keep_sizes, table_ir, workspace_table
from graphc_runtime.interrupts import CONTEXT_WORDS

CURSOR, END, ALLOCATOR, BEGIN = (CONTEXT_WORDS + i for i in range(4))
C_CONTEXT_WORDS = CONTEXT_WORDS + 4
# What a block takes beyond what was asked for: its header, alignment of its memory and of its place.
BLOCK_BYTES = 112 + 64

_SOURCE = f"""
define void @graphc_c_begin(ptr %ctx, ptr %call) nounwind {{
; The context of a call: empty but for where memory comes from (`graphc_call` of graphc.h).
  store [{C_CONTEXT_WORDS} x i64] zeroinitializer, ptr %ctx
  %none = icmp eq ptr %call, null
  br i1 %none, label %done, label %given
given:
  %workspace = load i64, ptr %call
  %bytes.at = getelementptr i64, ptr %call, i64 1
  %bytes = load i64, ptr %bytes.at
  %allocator.at = getelementptr i64, ptr %call, i64 2
  %allocator = load i64, ptr %allocator.at
  %end = add i64 %workspace, %bytes
  %begin.at = getelementptr i64, ptr %ctx, i64 {BEGIN}
  %cursor.at = getelementptr i64, ptr %ctx, i64 {CURSOR}
  %end.at = getelementptr i64, ptr %ctx, i64 {END}
  %source.at = getelementptr i64, ptr %ctx, i64 {ALLOCATOR}
  store i64 %workspace, ptr %begin.at
  store i64 %workspace, ptr %cursor.at
  store i64 %end, ptr %end.at
  store i64 %allocator, ptr %source.at
  br label %done
done:
  ret void
}}

define internal ptr @graphc_c_take(ptr %ctx, i64 %bytes) noinline nounwind {{
  %cursor.at = getelementptr i64, ptr %ctx, i64 {CURSOR}
  %end.at = getelementptr i64, ptr %ctx, i64 {END}
  %cursor = load i64, ptr %cursor.at
  %end = load i64, ptr %end.at
  %past = add i64 %cursor, 63
  %place = and i64 %past, -64
  %next = add i64 %place, %bytes
  %fits = icmp ule i64 %next, %end
  %some = icmp ne i64 %cursor, 0
  %good = and i1 %fits, %some
  br i1 %good, label %bump, label %ask
bump:
  store i64 %next, ptr %cursor.at
  %memory = inttoptr i64 %place to ptr
  ret ptr %memory
ask:
  %allocator.at = getelementptr i64, ptr %ctx, i64 {ALLOCATOR}
  %allocator = load ptr, ptr %allocator.at
  %none = icmp eq ptr %allocator, null
  br i1 %none, label %refuse, label %call
call:
  %self = load ptr, ptr %allocator
  %allocate.at = getelementptr ptr, ptr %allocator, i64 1
  %allocate = load ptr, ptr %allocate.at
  %given = call ptr %allocate(ptr %self, i64 %bytes, i64 64)
  ret ptr %given
refuse:
  ret ptr null
}}

define internal void @graphc_c_give(ptr %ctx, ptr %memory) noinline nounwind {{
  %end.at = getelementptr i64, ptr %ctx, i64 {END}
  %begin.at = getelementptr i64, ptr %ctx, i64 {BEGIN}
  %end = load i64, ptr %end.at
  %begin = load i64, ptr %begin.at
  %address = ptrtoint ptr %memory to i64
  %behind = icmp uge i64 %address, %begin
  %before = icmp ult i64 %address, %end
  %inside = and i1 %behind, %before
  br i1 %inside, label %done, label %call
call:
  %allocator.at = getelementptr i64, ptr %ctx, i64 {ALLOCATOR}
  %allocator = load ptr, ptr %allocator.at
  %self = load ptr, ptr %allocator
  %release.at = getelementptr ptr, ptr %allocator, i64 2
  %release = load ptr, ptr %release.at
  call void %release(ptr %self, ptr %memory)
  ret void
done:
  ret void
}}
"""

# Bytes of buffers up to which each has a place of its own. Finding common places takes longer than computing
# with so little memory, and nothing is kept from the last call; `f_workspace` asks for as much anyhow.
_APART = 1 << 17

_PLACES = f"""
define internal i64 @graphc_c_places(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order) nounwind {{
; As graphc_pack: places of buffers, and the bytes of all together.
begin:
  br label %next
next:
  %i = phi i64 [0, %begin], [%i1, %place]
  %end = phi i64 [0, %begin], [%behind, %place]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %done
look:
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %units.at = getelementptr i64, ptr %row, i64 2
  %key.at = getelementptr i64, ptr %row, i64 3
  %units = load i64, ptr %units.at
  %key = load i64, ptr %key.at
  %size.at = getelementptr i64, ptr %sizes, i64 %key
  %size = load i64, ptr %size.at
  %bytes = mul i64 %size, %units
  %past = add i64 %bytes, 63
  %rounded = and i64 %past, -64
  %behind = add i64 %end, %rounded
  %large = icmp ugt i64 %rounded, {_APART}
  %full = icmp ugt i64 %behind, {_APART}
  %much = or i1 %large, %full
  br i1 %much, label %pack, label %place
place:
  %at = getelementptr i64, ptr %offsets, i64 %i
  store i64 %end, ptr %at
  %i1 = add i64 %i, 1
  br label %next
done:
  ret i64 %end
pack:
  %packed = call i64 @graphc_pack(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order)
  ret i64 %packed
}}
"""

# Work that a pool would share stays with the caller.
SERIAL = """
define void @graphc_share(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %cost, i64 %alignment) nounwind {
  call void %body(ptr %frame, i64 %lower, i64 %upper)
  ret void
}
define void @graphc_share_blas(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %c, i64 %a) nounwind {
  call void %body(ptr %frame, i64 %lower, i64 %upper)
  ret void
}
define void @graphc_share_short(ptr %body, ptr %frame, i64 %count, i64 %cost) nounwind {
  call void %body(ptr %frame, i64 0, i64 %count)
  ret void
}
"""


def c_memory_ir(memory: Sequence[dict[str, Any]]) -> str:
    """The functions by which kernels get memory.

    Args:
        memory: the memory plans of a kernel's functions (see `graphc.passes.buffer.memory._record`).
    """
    tables = [workspace_table(entry) for record in memory for entry in record["workspaces"]]
    arena = arena_ir(poison=False, alone=True)
    for old, new in (
        ("call ptr @malloc(i64 %whole)", "call ptr @graphc_c_take(ptr %ctx, i64 %whole)"),
        ("call void @free(ptr ", "call void @graphc_c_give(ptr %ctx, ptr "),
    ):
        assert old in arena
        arena = arena.replace(old, new)
    text = [arena, _SOURCE, PLAIN if tables else ""]
    text += [_plan(table) if table.rows else _fixed(table) for table in tables]
    if any(table.rows for table in tables):
        text += [PACK, _PLACES]
    return "".join(text)


def _fixed(table: WorkspaceTable) -> str:
    return f"""
define i64 @graphc_workspace_{table.number}(ptr %ctx, i64 %bytes) noinline nounwind {{
  %memory = call ptr @graphc_alloc(ptr %ctx, i64 %bytes)
  %address = ptrtoint ptr %memory to i64
  ret i64 %address
}}
"""


def _plan(table: WorkspaceTable) -> str:
    """As `graphc.library.memory.workspace`, but for the memory of the last call, which there is none of."""
    return f"""
{table_ir(table)}
define i64 @graphc_plan_{table.number}(ptr %ctx, ptr, ptr %sizes, i64, i64, i64) noinline nounwind {{
begin:
  %block = call ptr @graphc_alloc(ptr %ctx, i64 {table.header})
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %start
start:
  %table = getelementptr i8, ptr %block, i64 {HEADER}
{keep_sizes(table, "start", "none", "graphc_c_places")}
  %memory = call ptr @graphc_alloc(ptr %ctx, i64 %bytes)
  %lost = icmp eq ptr %memory, null
  br i1 %lost, label %none, label %have
have:
  %field = getelementptr i64, ptr %block, i64 2
  store ptr %memory, ptr %field
  %result = ptrtoint ptr %block to i64
  ret i64 %result
none:
  ret i64 0
}}
"""
