# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which buffers of a function share which workspace, and the rewrite that puts them there."""

from __future__ import annotations

from typing import Any

from graphc.ir.lifetimes import Lifetimes
from graphc.passes.buffer.memory._buffer_sizes import Mover, buffer_size, item_size
from graphc.passes.buffer.memory._scratch import lend, rooms
from graphc.passes.buffer.memory._workspace import Buffer, Code, Place, Workspace
from graphc_dialects._mlir import ir


class Planner:
    """Plans the memory of a function's block, or of a region of a conditional in it.

    Attributes:
        lifetimes: the operations of the block, and the uses of buffers.
        left: why allocations stay with the arena, and how many.
        rooms: results in whose memory buffers may lie before it is written.
    """

    def __init__(self, module: ir.Module, block: ir.Block, *, in_results: bool = False) -> None:
        self._code = Code(module)
        self.lifetimes = Lifetimes(block)
        self._mover = Mover(self.lifetimes)
        self.left: dict[str, int] = {}
        self.rooms = rooms(self.lifetimes) if in_results else []

    def plan(self, number: int) -> list[Workspace]:
        """Workspaces for the allocations of the block, numbered from `number`."""
        numbers: dict[Any, int] = {}
        allocations = [op for op in self.lifetimes.operations if op.name == "memref.alloc"]
        buffers = [self._buffer(alloc, numbers) for alloc in allocations]
        waiting = [buffer for buffer in buffers if buffer is not None]
        if self.rooms:
            waiting = lend(self.rooms, waiting, len(self.lifetimes.operations))
        memo: dict[Any, float] = {}
        known = {
            id(buffer): max((self._mover.known_from(x, memo) for x in buffer.alloc.operands), default=-1)
            for buffer in waiting
        }
        workspaces: list[Workspace] = []
        while waiting:
            position = min(buffer.interval.first for buffer in waiting)
            early = [b for b in waiting if known[id(b)] <= position]
            # The first buffer may be used before the size of another is known, never before its own.
            waiting = [b for b in waiting if known[id(b)] > position]
            workspaces.append(Workspace(number + len(workspaces), position, early))
        return workspaces

    def _buffer(self, alloc: Any, numbers: dict[Any, int]) -> Buffer | None:
        kind = alloc.results[0].type
        item = item_size(kind.element_type)
        plain = kind.memory_space is None and kind.affine_map == ir.AffineMap.get_identity(kind.rank)
        if item is None or not plain:
            return self._leave("buffers of other layouts")
        uses = self.lifetimes.uses(alloc.results[0])
        if uses.returned or -1 in uses.positions:
            return self._leave("buffers returned")
        for op in uses.deallocations:
            op.erase()
        if not uses.positions:
            alloc.erase()
            return self._leave("buffers never used")
        size = buffer_size(alloc, item, numbers)
        return Buffer(alloc, self.lifetimes.interval(uses), size, uses.stored)

    def _leave(self, why: str) -> Buffer | None:
        self.left[why] = self.left.get(why, 0) + 1
        return None

    def rewrite(self, workspace: Workspace) -> None:
        """Takes the memory of a workspace, and gives its buffers their places."""
        operations = self.lifetimes.operations
        anchor = operations[workspace.position]
        for buffer in workspace.buffers:
            for size in buffer.alloc.operands:
                self._mover.move(size, workspace.position)
        places = self._code.take(workspace, anchor)
        for buffer, place in zip(workspace.buffers, places, strict=True):
            self._live(buffer, place)

    def put_in_results(self) -> None:
        """Gives the buffers in the memory of results their places."""
        for room in self.rooms:
            if room.buffers:
                first = min(buffer.interval.first for buffer in room.buffers)
                places = self._code.scratch(room.result, room.buffers, self.lifetimes.operations[first])
                for buffer, place in zip(room.buffers, places, strict=True):
                    self._live(buffer, place)

    def _live(self, buffer: Buffer, place: Place) -> None:
        operations, location = self.lifetimes.operations, buffer.alloc.location
        memory = self._code.begin(buffer, place, operations[buffer.interval.first])
        self._code.end(memory, operations[buffer.interval.last], location)
