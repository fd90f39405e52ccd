# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Workspaces: the memory of a function's intermediate buffers, kept from call to call.

A block of memory is `{next, capacity, memory, pool, used, 0}`, followed in a workspace with a table by its
sizes, its offsets and the order of its buffers, and then by the memory. While a call runs, its blocks are
linked to its context, blocks of the arena among them (their capacity is 0; see
below). At its end each workspace goes back to the first free slot of its pool. Slots
are taken and given by atomic exchange, so that each thread that calls at the same time has a workspace of its
own.

Poisoned code fills memory with 0xFF, a NaN of every floating-point type, and puts 64 bytes of another pattern
on either side of a workspace, which are compared at the end of the call.

`graphc.passes.buffer.plan_memory` writes the calls of these functions. They are made machine code of
with little effort: they are the same in every object, and none is in a loop.

Places buffers at run time: the algorithm of `graphc.library.places`.

Sizes are rounded up to the alignment. A row of the table is {first, last, units, key}: the lifetime of a
buffer, and its bytes as a multiple of one of the sizes.

The arena: memory that lives until the call ends, for buffers that have no place in a workspace.

A block of the arena is {next, 0, capacity, whether it is free, padding, memory}. malloc'ed memory is aligned
to 16, so 112 spare bytes suffice for the header and the alignment. A null result means out of memory: kernels
then return -1.

What an iteration of a loop gives back (`graphc_release_to`) is not freed but kept for the next one. In the
list of a context, blocks that are free come first, those of younger buffers before those of older ones
after them: a mark is the first block in use, and everything before it that is in use is younger. An
allocation takes the smallest free block that is large enough. Where there are only smaller ones, one of them
is freed, and the new block gets a quarter more than asked for: a loop whose buffers grow thus calls malloc a
few times, and never has more blocks than buffers alive at once.

Blocks are numbers, their addresses; the first word of a context is that of the first block.
"""

# mypy: ignore-errors

from __future__ import annotations

from functools import cache
from typing import Any

from graphc.library.places import ALIGNMENT, MOST_FOR_ALL_ORDERS
from graphc.native import BYTE, I64, Routine, Static, Value
from graphc.native.builtins import (
    address,
    at,
    atomic_load,
    call,
    cast,
    choose,
    compare_exchange,
    exchange,
    inlined,
    seldom,
    short,
    unrolled,
    variable,
    view,
)
from graphc.native.translate import Translator
from graphc_runtime.record import record

# Words of a block. In workspaces the second is the capacity, which is not 0, and the third the memory.
NEXT, KIND, ROOM, STATE = range(4)
# Bytes before the memory of a workspace (see `graphc.library.workspace`).
HEADER = 48
# The largest number of bytes that is asked for.
LARGEST = 1 << 60
CONTEXT, SIZE = Value("%context", I64.to), Value("%size", I64)


@inlined
def words(block):
    """The words at an address."""
    return at(block, "i64")


@inlined
def poisoned(memory, size):
    """Fills memory with 0xFF, a NaN of every floating-point type."""
    call("memset", at(memory, "u8"), cast(255, "i32"), size, returns="u8*")


def allocate(context, size, take, give, poison):
    """Memory of the arena. What takes and gives blocks is malloc and free, or given."""
    if size < 0 or size > LARGEST:
        return at(0, "u8")
    # A link is the address of a pointer to a block: that of the context, or of a block's first word.
    link, best, before, least = address(context), 0, 0, LARGEST + 1
    block = context[0]
    while block != 0:
        if words(block)[STATE] != 1:
            break
        room = words(block)[ROOM]
        better = (room >= size) & (room < least)
        best, before = choose(better, block, best), choose(better, link, before)
        least = choose(better, room, least)
        link = block
        block = words(block)[NEXT]
    if best != 0:
        # It becomes the first one in use, which the last free one is already before.
        if best != link:
            words(before)[0] = words(best)[NEXT]
            words(link)[0] = best
            words(best)[NEXT] = block
    else:
        room = size
        if link != address(context):
            small = context[0]
            context[0] = words(small)[NEXT]
            if small == link:
                link = address(context)
            if give is None:
                call("free", at(small, "u8"))
            else:
                give(context, small, 0)
            room += size >> 2
        if take is None:
            best = address(call("malloc", room + 112, returns="u8*"))
        else:
            best = take(context, room + 112)
        if best == 0:
            return at(0, "u8")
        words(best)[NEXT] = words(link)[0]
        words(link)[0] = best
        words(best)[KIND] = 0
        words(best)[ROOM] = room
    words(best)[STATE] = 0
    memory = (best + 95) & -64
    if poison:
        poisoned(memory, size)
    return at(memory, "u8")


def mark(context):
    """The first block in use."""
    block = context[0]
    while block != 0:
        if words(block)[STATE] != 1:
            break
        block = words(block)[NEXT]
    return block


def release_to(context, until):
    """Frees what was allocated since a mark: no workspace, since they are taken outside of loops."""
    block = context[0]
    while block != until:
        words(block)[STATE] = 1
        block = words(block)[NEXT]


def release(context, give, keep):
    """Gives back all that a call has taken; each block to `give`, or freed."""
    block = context[0]
    if block == 0:
        return
    context[0] = 0
    while True:
        following = words(block)[NEXT]
        if give is None:
            call("free", at(block, "u8"))
        else:
            give(context, block, keep)
        if following == 0:
            return
        block = following


def define_arena(
    t: Translator,
    take: Routine | None = None,
    give: Routine | None = None,
    *,
    poison: bool = False,
) -> None:
    """Defines what kernels call for memory that lives until the call ends, or the iteration of a loop.

    Args:
        t: gains the definitions.
        take: gives the address of so many bytes for a context, or 0; malloc if not given.
        give: frees a block at an address for a context.
        poison: fill memory with 0xFF before it is used.
    """
    more: list[Value | Static] = [Static(take), Static(give), Static(poison)]
    t.define(allocate, "graphc_alloc", [CONTEXT, SIZE, *more], attributes="noinline")
    t.define(mark, "graphc_mark", [CONTEXT])
    t.define(release_to, "graphc_release_to", [CONTEXT, Value("%until", I64)])


NO_LIMIT = (1 << 63) - 1


@inlined
def size_of(table, sizes, i):
    """Bytes of a buffer."""
    return (table[4 * i + 2] * sizes[table[4 * i + 3]] + (ALIGNMENT - 1)) & -ALIGNMENT


@seldom
def weight(table, sizes, i, by):
    """Sort key of buffers: 0 size, 1 size times length of life, 2 length of life, 3 end of life."""
    size, last = size_of(table, sizes, i), table[4 * i + 1]
    length = last - table[4 * i] + 1
    if by == 0:
        return size
    if by == 1:
        return size * length
    return length if by == 2 else last


@seldom
def pack(table, count, sizes, offsets, order):
    """Tries all orders, and goes back to the best; of equal ones to the first. Returns the size of all."""
    best, least = 0, NO_LIMIT
    orders = 1 if count > MOST_FOR_ALL_ORDERS else 4
    for by in range(orders):
        whole = place(table, count, sizes, offsets, order, by)
        if whole < least:
            best, least = by, whole
    if best != orders - 1:
        place(table, count, sizes, offsets, order, best)
    return least


@seldom
def place(table, count, sizes, offsets, order, by):
    """Places buffers in one of the orders, the largest weight first."""
    for i in range(count):
        heavy, to = weight(table, sizes, i, by), i
        while to > 0 and weight(table, sizes, order[to - 1], by) < heavy:
            order[to] = order[to - 1]
            to -= 1
        order[to] = i
    whole = 0
    # The first p buffers in `order` have their places, and are sorted by them.
    for p in range(count):
        b = order[p]
        size = size_of(table, sizes, b)
        offset = best_gap(table, p, sizes, offsets, order, b, size)
        offsets[b] = offset
        to = p
        while to > 0 and offsets[order[to - 1]] > offset:
            order[to] = order[to - 1]
            to -= 1
        order[to] = b
        whole = max(whole, offset + size)
    return whole


@inlined
def best_gap(table, placed, sizes, offsets, order, b, size):
    """The offset of the smallest gap for a buffer, or after all that live at the same time."""
    first, last = table[4 * b], table[4 * b + 1]
    end, best, least = 0, -1, NO_LIMIT
    for q in range(placed):
        other = order[q]
        if first <= table[4 * other + 1] and table[4 * other] <= last:
            gap = offsets[other] - end
            if gap >= size and gap < least:
                best, least = end, gap
            end = max(end, offsets[other] + size_of(table, sizes, other))
    return end if best < 0 else best


SLOTS = 8
# Words of a block, beside those that it has in common with blocks of the arena.
CAPACITY, MEMORY, POOL, USED = KIND, 2, 3, 4
_CANARY, _BESIDE = 197, 64
_SHORT = "noinline minsize optsize"
# Parameters of what finds places: of a memref of sizes, only where they are counts.
PLANNED = [
    CONTEXT,
    Value("%unused", BYTE.to),
    Value("%sizes", I64.to),
    *(Value(f"%{name}", I64) for name in ("offset", "count", "stride")),
]
# No size of a buffer is that; -1 is one that is too large for any memory.
_NO_SIZE = -2
# For kernels that take no memory.
NOTHING = "define void @graphc_release(ptr %context) nounwind {\n  ret void\n}\n"
# The status for memory that was written next to a workspace.
_DAMAGED = -2


@record(frozen=True)
class WorkspaceTable:
    """Parameters of the code of a workspace.

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

    @property
    def pool(self) -> str:
        """The variable that keeps workspaces."""
        return f"graphc_pool_{self.number}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """All rows, one after the other."""
        return tuple(number for row in self.rows for number in row)


def workspace_table(record: dict[str, Any]) -> WorkspaceTable:
    """From the record of a workspace (see `graphc.passes.buffer.plan_memory`)."""
    if record["fixed"]:
        return WorkspaceTable(record["number"])
    rows = [(b["first"], b["last"], b["units"], b["key"]) for b in record["buffers"]]
    return WorkspaceTable(record["number"], len(record["keys"]), tuple(rows))


@short
def take(pool):
    """A workspace from the first slot that has one, or 0."""
    for i in range(SLOTS):
        if atomic_load(pool, i, "monotonic") != 0:
            block = exchange(pool, i, 0, "acquire")
            if block != 0:
                return block
    return 0


@short
def give(context, block, keep):
    """Puts a workspace in a free slot of its pool; frees it if there is none, or if it is too large to be
    kept, or a block of the arena.
    """
    if words(block)[CAPACITY] != 0 and words(block)[CAPACITY] <= keep:
        pool = words(words(block)[POOL])
        for i in range(SLOTS):
            if atomic_load(pool, i, "monotonic") == 0 and compare_exchange(pool, i, 0, block, "release"):
                return
    call("free", at(block, "u8"))


@seldom
def fit(block, size, header):
    """A block (0 for a new one) with at least this capacity, its header preserved; 0, and the block freed,
    if there is no memory. There are 64 spare bytes on either side of the memory.
    """
    if block != 0 and size <= words(block)[CAPACITY]:
        return block
    new = address(call("realloc", at(block, "u8"), size + header + 3 * _BESIDE, returns="u8*"))
    if new == 0:
        call("free", at(block, "u8"))
        return 0
    # A capacity of 0 marks blocks of the arena.
    words(new)[CAPACITY] = max(size, 1)
    words(new)[MEMORY] = (new + header + 2 * _BESIDE - 1) & -_BESIDE
    return new


@inlined
def fitted(block, size, table):
    """As `fit`, which is one function for all workspaces."""
    return fit(cast(block, "i64"), cast(size, "i64"), cast(table.header, "i64"))


@inlined
def link(context, block, pool, size, poison):
    """Memory joins the chain of what the call gives back."""
    words(block)[NEXT] = context[0]
    words(block)[POOL] = address(pool)
    words(block)[USED] = size
    context[0] = block
    if poison:
        memory = words(block)[MEMORY]
        call("memset", at(memory - _BESIDE, "u8"), cast(_CANARY, "i32"), _BESIDE, returns="u8*")
        call("memset", at(memory + size, "u8"), cast(_CANARY, "i32"), _BESIDE, returns="u8*")
        poisoned(memory, size)


def fixed(context, size, table, poison):
    """The memory of a workspace, or 0."""
    if size < 0 or size > LARGEST:
        return 0
    pool = variable(table.pool, "i64")
    block = fitted(take(pool), size, table)
    if block == 0:
        return 0
    link(context, block, pool, size, poison)
    return words(block)[MEMORY]


def planned(context, unused, sizes, offset, count, stride, table, poison):
    """The block of a workspace with places for its buffers, or 0. They stay where they are while all sizes
    are those of the last call.
    """
    pool = variable(table.pool, "i64")
    block, same = take(pool), 0
    if block == 0:
        block = fitted(0, 0, table)
        if block == 0:
            return 0
        words(block + HEADER)[0] = _NO_SIZE
    known = words(block + HEADER)
    while same < table.keys:
        if known[same] != sizes[same]:
            break
        same += 1
    size = words(block)[USED]
    if same != table.keys:
        size = find_places(known, sizes, table, pack)
        if size < 0 or size > LARGEST:
            call("free", at(block, "u8"))
            return 0
        block = fitted(block, size, table)
        if block == 0:
            return 0
    link(context, block, pool, size, poison)
    return block


@inlined
def find_places(known, sizes, table, places):
    """Keeps sizes and finds places for the buffers, after them; returns the bytes of all, or -1 where a size
    is, which is too large for any memory.
    """
    for i in range(table.keys):
        if sizes[i] < 0:
            return -1
        known[i] = sizes[i]
    offsets = known[table.keys :]
    count = len(table.rows)
    return places(view(table.numbers, "i64"), count, known, offsets, offsets[count:])


def unload(tables):
    """Frees what pools keep."""
    for i in unrolled(len(tables)):
        pool = variable(tables[i].pool, "i64")
        block = take(pool)
        while block != 0:
            call("free", at(block, "u8"))
            block = take(pool)


def intact(context):
    """0, or the status for memory that was written next to a workspace."""
    block = context[0]
    while block != 0:
        if words(block)[CAPACITY] != 0:
            memory = words(block)[MEMORY]
            for i in range(_BESIDE):
                if at(memory - _BESIDE, "u8")[i] != _CANARY or (
                    at(memory + words(block)[USED], "u8")[i] != _CANARY
                ):
                    return _DAMAGED
        block = words(block)[NEXT]
    return 0


def without(context):
    """As `intact` without workspaces: there is nothing that could be damaged."""
    return 0


@cache
def memory_ir(
    tables: tuple[WorkspaceTable, ...], *, keep_bytes: int, poison: bool, arena: bool = True
) -> str:
    """The functions by which kernels get memory.

    Args:
        tables: the workspaces.
        keep_bytes: largest workspace that is kept for the next call.
        poison: fill memory with 0xFF before each use, and test that nothing is written next to a workspace.
        arena: whether the kernel takes memory of the arena besides.
    """
    if not tables and not arena and not poison:
        return NOTHING
    t = Translator(prefix="graphc_memory", apart=False)
    if arena:
        define_arena(t, poison=poison)
    if poison:
        t.define(intact if tables else without, "graphc_intact", [CONTEXT])
    if not tables:
        t.define(release, "graphc_release", [CONTEXT, Static(None), Static(0)])
        return t.text()
    for table in tables:
        statics = [Static(table), Static(poison)]
        if table.rows:
            t.define(planned, f"graphc_plan_{table.number}", [*PLANNED, *statics], attributes=_SHORT)
        else:
            t.define(fixed, f"graphc_workspace_{table.number}", [CONTEXT, SIZE, *statics], attributes=_SHORT)
    t.define(release, "graphc_release", [CONTEXT, Static(give), Static(keep_bytes)], attributes=_SHORT)
    t.define(unload, "graphc_unload", [Static(tables)], attributes="noinline optnone")
    pools = "".join(f"@{table.pool} = internal global [{SLOTS} x i64] zeroinitializer\n" for table in tables)
    return pools + t.text()
