# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the memory of functions that C calls: the caller's workspace, then the caller's allocator.

Kernels ask for memory as ever (`graphc.library.memory`); only where it comes from differs, and that nothing
is kept between calls. The context has four words more:

    10  first free byte of the workspace        12  the allocator (`graphc_allocator` of graphc.h)
    11  end of the workspace                    13  its beginning
"""
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Sequence

from graphc.library.workspace import (
    CONTEXT,
    HEADER,
    MEMORY,
    PLANNED,
    SIZE,
    allocate,
    define_arena,
    find_places,
    pack,
    release,
    size_of,
    words,
    workspace_table,
)
from graphc.native import I64, Static, Value
from graphc.native.builtins import address, apart, at, inlined, invoke, unrolled
from graphc.native.translate import Translator
from graphc_runtime.interrupts import CONTEXT_WORDS

CURSOR, END, ALLOCATOR, BEGIN = (CONTEXT_WORDS + i for i in range(4))
C_CONTEXT_WORDS = CONTEXT_WORDS + 4
# What a block takes beyond what was asked for: its header, alignment of its memory and of its place.
BLOCK_BYTES = 112 + 64
# Bytes of buffers up to which each has a place of its own. Finding common places takes longer than computing
# with so little memory, and nothing is kept from the last call; `f_workspace` asks for as much anyhow.
_APART = 1 << 17


def begin(context, given):
    """The context of a call: empty but for where memory comes from (`graphc_call` of graphc.h)."""
    for i in unrolled(C_CONTEXT_WORDS):
        context[i] = 0
    if address(given) != 0:
        context[BEGIN] = given[0]
        context[CURSOR] = given[0]
        context[END] = given[0] + given[1]
        context[ALLOCATOR] = given[2]


@apart
def take(context, size):
    """The address of so many bytes, or 0."""
    place = (context[CURSOR] + 63) & -64
    if context[CURSOR] != 0 and place + size <= context[END]:
        context[CURSOR] = place + size
        return place
    if context[ALLOCATOR] == 0:
        return 0
    allocator = words(context[ALLOCATOR])
    return address(invoke(at(allocator[1], "u8"), at(allocator[0], "u8"), size, 64, returns="u8*"))


@apart
def give(context, block, keep):
    """Gives a block back to the allocator, if it is not of the workspace."""
    if block < context[BEGIN] or block >= context[END]:
        allocator = words(context[ALLOCATOR])
        invoke(at(allocator[2], "u8"), at(allocator[0], "u8"), at(block, "u8"))


@inlined
def taken(context, size):
    """Memory of the arena."""
    return address(allocate(context, size, take, give, False))


def fixed(context, size):
    """As `graphc.library.workspace`; there is no memory of the last call."""
    return taken(context, size)


def planned(context, unused, sizes, offset, count, stride, table):
    """As `graphc.library.workspace`; there is no memory of the last call."""
    block = taken(context, table.header)
    if block == 0:
        return 0
    size = find_places(words(block + HEADER), sizes, table, places)
    if size < 0:
        return 0
    memory = taken(context, size)
    if memory == 0:
        return 0
    words(block)[MEMORY] = memory
    return block


def places(table, count, sizes, offsets, order):
    """As `pack`: places of buffers, and the bytes of all together."""
    end = 0
    for i in range(count):
        size = size_of(table, sizes, i)
        if size > _APART or end + size > _APART:
            return pack(table, count, sizes, offsets, order)
        offsets[i] = end
        end += size
    return end


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


def c_memory_ir(memory: Sequence[dict[str, object]]) -> str:
    """The functions by which kernels get memory.

    Args:
        memory: the memory plans of a kernel's functions (see `graphc.passes.buffer.plan_memory`).
    """
    t = Translator(prefix="graphc_memory", apart=False)
    t.define(begin, "graphc_c_begin", [CONTEXT, Value("%given", I64.to)])
    define_arena(t, take, give)
    t.define(release, "graphc_release", [CONTEXT, Static(give), Static(0)])
    for table in (workspace_table(entry) for record in memory for entry in record["workspaces"]):
        if table.rows:
            symbol = f"graphc_plan_{table.number}"
            t.define(planned, symbol, [*PLANNED, Static(table)], attributes="noinline")
        else:
            t.define(fixed, f"graphc_workspace_{table.number}", [CONTEXT, SIZE], attributes="noinline")
    return t.text()
