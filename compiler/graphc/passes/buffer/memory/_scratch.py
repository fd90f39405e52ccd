# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers in the memory of results that are not written yet."""

from __future__ import annotations

import math
from dataclasses import field

from graphc.ir.diagnostics import fail
from graphc.ir.lifetimes import Lifetimes
from graphc.library.memory.places import Interval, aligned, first_fit
from graphc.lowering.returns import FIRST_RESULT
from graphc.passes.buffer.memory._buffer_sizes import item_size
from graphc.passes.buffer.memory._workspace import Buffer
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class Room:
    """The memory of a result.

    Attributes:
        result: the argument of the function. number: of the result.
        bytes: its size. item: bytes of an element, which its address is a multiple of.
        until: the position of the operation that accesses it first.
        buffers: what lies there before that.
    """

    result: ir.Value
    number: int
    bytes: int
    item: int
    until: int
    buffers: list[Buffer] = field(default_factory=list)

    def offset(self, buffer: Buffer) -> int | None:
        """Where a buffer fits, beside those that live at the same time; None if it does not."""
        item = item_size(buffer.alloc.results[0].type.element_type) or 0
        if buffer.interval.last >= self.until or not item or self.item % item:
            return None
        others = [other for other in self.buffers if other.interval.overlaps(buffer.interval)]
        taken = [(other.offset, other.offset + aligned(other.size.units)) for other in others]
        offset = first_fit(taken, buffer.size.units)
        return offset if offset + buffer.size.units <= self.bytes else None


def rooms(lifetimes: Lifetimes) -> list[Room]:
    """The results of a function, as far as their sizes are known; the smallest first."""
    function = lifetimes.block.owner.operation
    if FIRST_RESULT not in function.attributes:
        return []
    given = function.attributes[FIRST_RESULT]
    if not isinstance(given, ir.IntegerAttr):
        fail(function, f"attribute '{FIRST_RESULT}' must be an integer, but is {given}")
    first = ir.IntegerAttr(given).value
    found = []
    for number, result in enumerate(list(lifetimes.block.arguments)[first:]):
        kind = ir.MemRefType(result.type)
        item, plain = item_size(kind.element_type), ir.MemRefType.get(list(kind.shape), kind.element_type)
        uses = lifetimes.uses(result)
        if item is None or kind != plain or not kind.has_static_shape or -1 in uses.positions:
            continue
        accesses = lifetimes.accesses(uses)
        size = math.prod(kind.shape) * item
        found.append(Room(result, number, size, item, min(accesses, default=0)))
    return sorted(found, key=lambda room: room.bytes)


def lend(rooms: list[Room], buffers: list[Buffer], length: int) -> list[Buffer]:
    """Gives buffers places in the memory of results, as long as that lowers what others need at once.

    Args:
        rooms: gain buffers, which gain offsets.
        buffers: all that need memory.
        length: the number of positions.

    Returns:
        The buffers that are left.
    """
    left = list(buffers)
    while True:
        usage = [0] * length
        for buffer in left:
            for position in range(buffer.interval.first, buffer.interval.last + 1):
                usage[position] += _bytes(buffer)
        most = max(usage, default=0)
        peak = Interval(usage.index(most), usage.index(most)) if most else None
        alive = [buffer for buffer in left if peak is not None and buffer.interval.overlaps(peak)]
        for buffer in sorted(alive, key=_bytes, reverse=True):
            if _bytes(buffer) and _put(buffer, rooms):
                left = [other for other in left if other is not buffer]
                break
        else:
            return left


def _put(buffer: Buffer, rooms: list[Room]) -> bool:
    for room in rooms:
        offset = room.offset(buffer)
        if offset is not None:
            buffer.offset = offset
            room.buffers.append(buffer)
            return True
    return False


def _bytes(buffer: Buffer) -> int:
    return 0 if buffer.size.factors else buffer.size.units
