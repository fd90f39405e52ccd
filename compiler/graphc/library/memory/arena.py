# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text of the arena: memory that lives until the call ends, for buffers that have no place in a workspace.

A block of the arena is {next, 0, capacity, whether it is free, padding, memory}. malloc'ed memory is aligned
to 16, so 112 spare bytes suffice for the header and the alignment. A null result means out of memory: kernels
then return -1.

What an iteration of a loop gives back (`graphc_release_to`) is not freed but kept for the next one. In the
list of a context, blocks that are free come first, those of younger buffers before those of older ones
after them: a mark is the first block in use, and everything before it that is in use is younger. An
allocation takes the smallest free block that is large enough. Where there are only smaller ones, one of them
is freed, and the new block gets a quarter more than asked for: a loop whose buffers grow thus calls malloc a
few times, and never has more blocks than buffers alive at once.

Text, and not in the kernel language, for the reason that `graphc.library.memory.packing` gives.
"""

from __future__ import annotations

# Bytes before the memory of a workspace (see `graphc.library.memory.workspace`).
HEADER = 48
# What this text, that of workspaces and that of interrupts refer to.
DECLARATIONS = """
declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
!1 = !{!"branch_weights", i32 1, i32 1}
"""
FILL = "  call void @llvm.memset.p0.i64(ptr %memory, i8 -1, i64 %bytes, i1 false)\n"


def arena_ir(*, poison: bool, alone: bool, used: bool = True) -> str:
    """The functions of the arena.

    Args:
        poison: fill memory with 0xFF before it is used.
        alone: define `graphc_release`, which otherwise gives back workspaces too.
        used: whether a kernel takes memory of it.
    """
    allocate = _ALLOCATE.replace("FILL", FILL if poison else "") + _GIVE_BACK if used else ""
    return "".join([DECLARATIONS, allocate, _RELEASE if alone else ""])


# A link is the address of a pointer to a block: that of the context, or of a block's first field.
_ALLOCATE = """
define noalias ptr @graphc_alloc(ptr %ctx, i64 %bytes) noinline nounwind {
begin:
  %negative = icmp slt i64 %bytes, 0
  %huge = icmp sgt i64 %bytes, 1152921504606846976
  %bad = or i1 %negative, %huge
  br i1 %bad, label %none, label %scan
scan:
  %link = phi ptr [%ctx, %begin], [%block, %test]
  %best = phi ptr [null, %begin], [%best1, %test]
  %to_best = phi ptr [null, %begin], [%to_best1, %test]
  %least = phi i64 [-1, %begin], [%least1, %test]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %choose, label %look
look:
  %state = getelementptr i64, ptr %block, i64 3
  %is = load i64, ptr %state
  %free = icmp eq i64 %is, 1
  br i1 %free, label %test, label %choose
test:
  %field = getelementptr i64, ptr %block, i64 2
  %capacity = load i64, ptr %field
  %fits = icmp uge i64 %capacity, %bytes
  %smaller = icmp ult i64 %capacity, %least
  %better = and i1 %fits, %smaller
  %best1 = select i1 %better, ptr %block, ptr %best
  %to_best1 = select i1 %better, ptr %link, ptr %to_best
  %least1 = select i1 %better, i64 %capacity, i64 %least
  br label %scan
choose:
  %found = icmp ne ptr %best, null
  br i1 %found, label %reuse, label %make
reuse:
; The block becomes the first one in use, which the last free one is already before.
  %is_last = icmp eq ptr %best, %link
  br i1 %is_last, label %have, label %move
move:
  %after = load ptr, ptr %best
  store ptr %after, ptr %to_best
  store ptr %best, ptr %link
  store ptr %block, ptr %best
  br label %have
make:
  %any = icmp ne ptr %link, %ctx
  br i1 %any, label %replace, label %new
replace:
  %small = load ptr, ptr %ctx
  %rest = load ptr, ptr %small
  store ptr %rest, ptr %ctx
  call void @free(ptr %small)
  %only = icmp eq ptr %small, %link
  %place = select i1 %only, ptr %ctx, ptr %link
  %more = lshr i64 %bytes, 2
  %roomy = add i64 %bytes, %more
  br label %new
new:
  %at = phi ptr [%link, %make], [%place, %replace]
  %room = phi i64 [%bytes, %make], [%roomy, %replace]
  %whole = add i64 %room, 112
  %fresh = call ptr @malloc(i64 %whole)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %none, label %insert
insert:
  %following = load ptr, ptr %at
  store ptr %following, ptr %fresh
  store ptr %fresh, ptr %at
  %kind = getelementptr i64, ptr %fresh, i64 1
  %size = getelementptr i64, ptr %fresh, i64 2
  store i64 0, ptr %kind
  store i64 %room, ptr %size
  br label %have
have:
  %taken = phi ptr [%best, %reuse], [%best, %move], [%fresh, %insert]
  %used = getelementptr i64, ptr %taken, i64 3
  store i64 0, ptr %used
  %address = ptrtoint ptr %taken to i64
  %past = add i64 %address, 95
  %aligned = and i64 %past, -64
  %memory = inttoptr i64 %aligned to ptr
FILL  ret ptr %memory
none:
  ret ptr null
}
"""

_GIVE_BACK = """
define i64 @graphc_mark(ptr %ctx) nounwind {
; The first block in use.
begin:
  br label %next
next:
  %link = phi ptr [%ctx, %begin], [%block, %look]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %look
look:
  %state = getelementptr i64, ptr %block, i64 3
  %is = load i64, ptr %state
  %free = icmp eq i64 %is, 1
  br i1 %free, label %next, label %done
done:
  %mark = ptrtoint ptr %block to i64
  ret i64 %mark
}

define void @graphc_release_to(ptr %ctx, i64 %mark) nounwind {
; Frees what was allocated since the mark was taken: no workspace, since they are taken outside of loops.
begin:
  %until = inttoptr i64 %mark to ptr
  br label %next
next:
  %link = phi ptr [%ctx, %begin], [%block, %mark_free]
  %block = load ptr, ptr %link
  %last = icmp eq ptr %block, %until
  br i1 %last, label %done, label %mark_free
mark_free:
  %state = getelementptr i64, ptr %block, i64 3
  store i64 1, ptr %state
  br label %next
done:
  ret void
}
"""

_RELEASE = """
define void @graphc_release(ptr %ctx) nounwind {
begin:
  %head = load ptr, ptr %ctx
  %empty = icmp eq ptr %head, null
  br i1 %empty, label %done, label %next, !prof !1
next:
  %block = phi ptr [%head, %begin], [%following, %next]
  %following = load ptr, ptr %block
  call void @free(ptr %block)
  %last = icmp eq ptr %following, null
  br i1 %last, label %clear, label %next
clear:
  store ptr null, ptr %ctx
  br label %done
done:
  ret void
}
"""
