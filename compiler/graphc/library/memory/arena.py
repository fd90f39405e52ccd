# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arena: memory that lives until the call ends, for buffers that have no place in a workspace.

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

from graphc.native.builtins import address, at, call, cast, choose, inlined
from graphc.native.translate import Translator
from graphc.native.types import I64, Routine, Static, Value

# Words of a block. In workspaces the second is the capacity, which is not 0, and the third the memory.
NEXT, KIND, ROOM, STATE = range(4)
# Bytes before the memory of a workspace (see `graphc.library.memory.workspace`).
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
