# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text of the arena: memory that lives until the call ends, for buffers that have no place in a workspace.

A block of the arena is {next, 0, padding to 64 bytes, memory}. malloc'ed memory is aligned to 16, so 112
spare bytes suffice for the header and the alignment. A null result means out of memory: kernels then return
-1.
"""

from __future__ import annotations

# Bytes in front of the memory of a workspace (see `graphc.codegen.workspace`).
HEADER = 48
FILL = "  call void @llvm.memset.p0.i64(ptr %memory, i8 -1, i64 %bytes, i1 false)\n"


def arena_ir(*, poison: bool, alone: bool) -> str:
    """The functions of the arena.

    Args:
        poison: fill memory with 0xFF before it is used.
        alone: define `graphc_release`, which otherwise gives back workspaces too.
    """
    return _ARENA.replace("FILL", FILL if poison else "") + (_RELEASE if alone else "")


_ARENA = """
define noalias ptr @graphc_alloc(ptr %ctx, i64 %bytes) noinline nounwind {
  %negative = icmp slt i64 %bytes, 0
  %huge = icmp sgt i64 %bytes, 1152921504606846976
  %bad = or i1 %negative, %huge
  br i1 %bad, label %none, label %get
get:
  %whole = add i64 %bytes, 112
  %block = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %link
link:
  %head = load ptr, ptr %ctx
  %mark = getelementptr i64, ptr %block, i64 1
  store ptr %head, ptr %block
  store i64 0, ptr %mark
  store ptr %block, ptr %ctx
  %address = ptrtoint ptr %block to i64
  %past = add i64 %address, 79
  %aligned = and i64 %past, -64
  %memory = inttoptr i64 %aligned to ptr
FILL  ret ptr %memory
none:
  ret ptr null
}

define i64 @graphc_mark(ptr %ctx) nounwind {
  %head = load ptr, ptr %ctx
  %mark = ptrtoint ptr %head to i64
  ret i64 %mark
}

define void @graphc_release_to(ptr %ctx, i64 %mark) nounwind {
; Frees what was allocated since the mark was taken: no workspace, since they are taken outside of loops.
begin:
  %until = inttoptr i64 %mark to ptr
  %head = load ptr, ptr %ctx
  %empty = icmp eq ptr %head, %until
  br i1 %empty, label %done, label %next, !prof !1
next:
  %block = phi ptr [%head, %begin], [%following, %next]
  %following = load ptr, ptr %block
  call void @free(ptr %block)
  %last = icmp eq ptr %following, %until
  br i1 %last, label %clear, label %next
clear:
  store ptr %until, ptr %ctx
  br label %done
done:
  ret void
}
"""

_RELEASE = """
define void @graphc_release(ptr %ctx) nounwind {
  call void @graphc_release_to(ptr %ctx, i64 0)
  ret void
}
"""
