# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text of workspaces: the memory of a function's intermediate buffers, kept from call to call.

A block of memory is `{next, capacity, memory, pool, used, 0}`, followed in a workspace with a table by its
sizes, its offsets and the order of its buffers, and then by the memory. While a call runs, its blocks are
linked to its context, blocks of the arena among them (their capacity is 0; see
`graphc.library.memory.arena`). At its end each workspace goes back to the first free slot of its pool. Slots
are taken and given by atomic exchange, so that each thread that calls at the same time has a workspace of its
own.

`graphc.passes.buffer.memory.plan_memory` writes the calls of these functions. Their attributes keep LLVM from
spending time on them: they are the same in every object, and none is in a loop.

Text, and not in the kernel language, for the reason that `graphc.library.memory.packing` gives, and as that
has no atomic operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.library.memory.access import INTACT, PLAIN, POISONED
from graphc.library.memory.arena import HEADER, arena_ir
from graphc.library.memory.packing import PACK
from graphc_runtime.record import record

SLOTS = 8


@record(frozen=True)
class WorkspaceTable:
    """What the code of a workspace depends on.

    Attributes:
        number: of the workspace in the module.
        keys: number of sizes that `graphc_plan_<number>` takes; 0 if the kernel computes the size itself.
        rows: for each buffer with a place to be found at run time: the first and last position of its
            lifetime, and its bytes as a multiple of one of the sizes: (first, last, units, key).
    """

    number: int
    keys: int = 0
    rows: tuple[tuple[int, int, int, int], ...] = ()

    @property
    def header(self) -> int:
        """Bytes before the memory."""
        return HEADER + 8 * (self.keys + 2 * len(self.rows))


def workspace_table(record: dict[str, Any]) -> WorkspaceTable:
    """From the record of a workspace (see `graphc.passes.buffer.memory._record`)."""
    if record["fixed"]:
        return WorkspaceTable(record["number"])
    rows = [(b["first"], b["last"], b["units"], b["key"]) for b in record["buffers"]]
    return WorkspaceTable(record["number"], len(record["keys"]), tuple(rows))


def memory_ir(tables: Sequence[WorkspaceTable], *, keep_bytes: int, poison: bool, arena: bool = True) -> str:
    """The functions by which kernels get memory.

    Args:
        tables: the workspaces.
        keep_bytes: largest workspace that is kept for the next call.
        poison: fill memory with 0xFF before each use, and test that nothing is written next to a workspace.
        arena: whether the kernel takes memory of the arena besides.
    """
    beside = arena_ir(poison=poison, alone=not tables, used=arena)
    if not tables:
        return beside + (INTACT if poison else "")
    text = [beside, _COMMON.replace("KEEP", str(keep_bytes)).replace("SLOTS", str(SLOTS))]
    text.append(POISONED if poison else PLAIN)
    text += [_pool(table.number) + (_plan(table) if table.rows else _fixed(table)) for table in tables]
    if any(table.rows for table in tables):
        text.append(PACK)
    frees = "".join(f"  call void @graphc_empty(ptr @graphc_pool_{table.number})\n" for table in tables)
    text.append(f"\ndefine void @graphc_unload() noinline optnone nounwind {{\n{frees}  ret void\n}}\n")
    return "".join(text)


def _pool(number: int) -> str:
    return f"\n@graphc_pool_{number} = internal global [{SLOTS} x ptr] zeroinitializer\n"


def _fixed(table: WorkspaceTable) -> str:
    number = table.number
    return f"""
define i64 @graphc_workspace_{number}(ptr %ctx, i64 %bytes) noinline minsize optsize nounwind {{
  %bad = icmp ugt i64 %bytes, 1152921504606846976
  br i1 %bad, label %none, label %take
take:
  %old = call ptr @graphc_take(ptr @graphc_pool_{number})
  %block = call ptr @graphc_fit(ptr %old, i64 %bytes, i64 {table.header})
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %have
have:
  call void @graphc_link(ptr %ctx, ptr %block, ptr @graphc_pool_{number}, i64 %bytes)
  %field = getelementptr i64, ptr %block, i64 2
  %memory = load i64, ptr %field
  ret i64 %memory
none:
  ret i64 0
}}
"""


def table_ir(table: WorkspaceTable) -> str:
    """The rows of a table, for `graphc_pack`."""
    rows = ", ".join(f"[4 x i64] [{', '.join(f'i64 {value}' for value in row)}]" for row in table.rows)
    return f"@graphc_table_{table.number} = internal constant [{len(table.rows)} x [4 x i64]] [{rows}]"


def keep_sizes(table: WorkspaceTable, before: str, refused: str, pack: str = "graphc_pack") -> str:
    """Code that keeps `%sizes` in `%table` and finds places for the buffers: `%bytes` altogether.

    Args:
        table: of the workspace.
        before: the block from which control comes.
        refused: the block to go to where a size is -1, which is too large for any memory.
        pack: the function that finds the places.
    """
    keys, count = table.keys, len(table.rows)
    return f"""  br label %copy
copy:
  %c = phi i64 [0, %{before}], [%c1, %store]
  %unfinished = icmp slt i64 %c, {keys}
  br i1 %unfinished, label %read, label %pack
read:
  %pc = getelementptr i64, ptr %sizes, i64 %c
  %size = load i64, ptr %pc
  %huge = icmp slt i64 %size, 0
  br i1 %huge, label %{refused}, label %store
store:
  %pt = getelementptr i64, ptr %table, i64 %c
  store i64 %size, ptr %pt
  %c1 = add i64 %c, 1
  br label %copy
pack:
  %offsets = getelementptr i64, ptr %table, i64 {keys}
  %order = getelementptr i64, ptr %offsets, i64 {count}
  %bytes = call i64 @{pack}(ptr @graphc_table_{table.number}, i64 {count}, ptr %table, ptr %offsets,
    ptr %order)"""


def _plan(table: WorkspaceTable) -> str:
    keys, number = table.keys, table.number
    return f"""
{table_ir(table)}
define i64 @graphc_plan_{number}(ptr %ctx, ptr, ptr %sizes, i64, i64, i64)
    noinline minsize optsize nounwind {{
begin:
  %old = call ptr @graphc_take(ptr @graphc_pool_{number})
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %make, label %compare
make:
  %made = call ptr @graphc_fit(ptr null, i64 0, i64 {table.header})
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %none, label %renew
compare:
; Whether all sizes are those of the last call.
  %i = phi i64 [0, %begin], [%i1, %same]
  %more = icmp slt i64 %i, {keys}
  br i1 %more, label %test, label %hit
test:
  %known = getelementptr i8, ptr %old, i64 {HEADER}
  %pk = getelementptr i64, ptr %known, i64 %i
  %ps = getelementptr i64, ptr %sizes, i64 %i
  %k = load i64, ptr %pk
  %s = load i64, ptr %ps
  %equal = icmp eq i64 %k, %s
  br i1 %equal, label %same, label %renew
same:
  %i1 = add i64 %i, 1
  br label %compare
hit:
  %field = getelementptr i64, ptr %old, i64 4
  %used = load i64, ptr %field
  br label %have
renew:
  %b = phi ptr [%made, %make], [%old, %test]
  %table = getelementptr i8, ptr %b, i64 {HEADER}
{keep_sizes(table, "renew", "give")}
  %many = icmp ugt i64 %bytes, 1152921504606846976
  br i1 %many, label %give, label %fit
fit:
  %fitted = call ptr @graphc_fit(ptr %b, i64 %bytes, i64 {table.header})
  %lost = icmp eq ptr %fitted, null
  br i1 %lost, label %none, label %have
have:
  %block = phi ptr [%old, %hit], [%fitted, %fit]
  %total = phi i64 [%used, %hit], [%bytes, %fit]
  call void @graphc_link(ptr %ctx, ptr %block, ptr @graphc_pool_{number}, i64 %total)
  %result = ptrtoint ptr %block to i64
  ret i64 %result
give:
  call void @free(ptr %b)
  br label %none
none:
  ret i64 0
}}
"""


_COMMON = """
declare ptr @realloc(ptr, i64)

define internal ptr @graphc_take(ptr %pool) noinline minsize optsize nounwind {
; A workspace from the first slot that has one, or null.
begin:
  br label %test
test:
  %i = phi i64 [0, %begin], [%i1, %next]
  %more = icmp slt i64 %i, SLOTS
  br i1 %more, label %look, label %none
look:
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %next, label %take
take:
  %block = atomicrmw xchg ptr %slot, ptr null acquire
  %gone = icmp eq ptr %block, null
  br i1 %gone, label %next, label %done
next:
  %i1 = add i64 %i, 1
  br label %test
done:
  ret ptr %block
none:
  ret ptr null
}

define internal void @graphc_give(ptr %block) noinline minsize optsize nounwind {
; Puts a workspace in a free slot of its pool; frees it if there is none, or if it is too large to be kept.
begin:
  %f1 = getelementptr i64, ptr %block, i64 1
  %f3 = getelementptr i64, ptr %block, i64 3
  %capacity = load i64, ptr %f1
  %pool = load ptr, ptr %f3
  %large = icmp ugt i64 %capacity, KEEP
  br i1 %large, label %drop, label %test
test:
  %i = phi i64 [0, %begin], [%i1, %next]
  %more = icmp slt i64 %i, SLOTS
  br i1 %more, label %look, label %drop
look:
  %slot = getelementptr ptr, ptr %pool, i64 %i
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %put, label %next
put:
  %pair = cmpxchg ptr %slot, ptr null, ptr %block release monotonic
  %stored = extractvalue {ptr, i1} %pair, 1
  br i1 %stored, label %done, label %next
next:
  %i1 = add i64 %i, 1
  br label %test
drop:
  call void @free(ptr %block)
  ret void
done:
  ret void
}

define internal void @graphc_empty(ptr %pool) noinline optnone nounwind {
begin:
  br label %test
test:
  %block = call ptr @graphc_take(ptr %pool)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %drop
drop:
  call void @free(ptr %block)
  br label %test
done:
  ret void
}

define internal ptr @graphc_fit(ptr %block, i64 %bytes, i64 %header) noinline optnone nounwind {
; A block (null for a new one) with at least this capacity, its header preserved; null, and the block freed,
; if there is no memory. There are 64 spare bytes on either side of the memory.
begin:
  %fresh = icmp eq ptr %block, null
  br i1 %fresh, label %grow, label %test
test:
  %f1 = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %f1
  %fits = icmp ule i64 %bytes, %capacity
  br i1 %fits, label %good, label %grow
good:
  ret ptr %block
grow:
  %spare = add i64 %header, 192
  %whole = add i64 %bytes, %spare
  %new = call ptr @realloc(ptr %block, i64 %whole)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %drop, label %fill
fill:
  %address = ptrtoint ptr %new to i64
  %behind = add i64 %address, %header
  %past = add i64 %behind, 127
  %memory = and i64 %past, -64
  %n1 = getelementptr i64, ptr %new, i64 1
  %n2 = getelementptr i64, ptr %new, i64 2
; A capacity of 0 marks blocks of the arena.
  %some = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  store i64 %some, ptr %n1
  store i64 %memory, ptr %n2
  ret ptr %new
drop:
  call void @free(ptr %block)
  ret ptr null
}
declare i64 @llvm.umax.i64(i64, i64)

define void @graphc_release(ptr %ctx) noinline minsize optsize nounwind {
begin:
  %head = load ptr, ptr %ctx
  %empty = icmp eq ptr %head, null
  br i1 %empty, label %done, label %next
next:
  %block = phi ptr [%head, %begin], [%following, %again]
  %following = load ptr, ptr %block
  %f1 = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %f1
  %arena = icmp eq i64 %capacity, 0
  br i1 %arena, label %drop, label %give
drop:
  call void @free(ptr %block)
  br label %again
give:
  call void @graphc_give(ptr %block)
  br label %again
again:
  %last = icmp eq ptr %following, null
  br i1 %last, label %clear, label %next
clear:
  store ptr null, ptr %ctx
  br label %done
done:
  ret void
}
"""
