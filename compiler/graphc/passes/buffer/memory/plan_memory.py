# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intermediate buffers get places in one workspace.

Which buffers of a function share which workspace, and the rewrite that puts them there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.ir.lifetimes import Lifetimes
from graphc.ir.walk import blocks_outside_loops, functions
from graphc.passes.buffer.memory._buffer_sizes import Mover, buffer_size, item_size
from graphc.passes.buffer.memory._record import attach, lend, record_function, rooms
from graphc.passes.buffer.memory._workspace import Buffer, Code, Place, Workspace
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
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


@record()
class PlanMemory(Pass):
    """Replaces the allocations of a function by parts of one block of memory, its workspace.

    Planned is every `memref.alloc` in the block of a function; those in loops stay with the call's arena
    (see arena-allocation), and so do those that are returned. A region of a conditional that is in no loop
    has a workspace of its own, which is only taken if the region is chosen.

    * The lifetime of a buffer is the interval from the first to the last operation of the block that uses it
      or something that may hold its address: views, results of `arith.select` and of loops that it goes
      through, integers made of its address. Uses in a region count for the operation that has the region. A
      buffer whose address is stored lives to the end.
    * Buffers are placed by size, the largest first, each in the smallest gap that no buffer of an overlapping
      lifetime takes. Offsets are multiples of 64 bytes.
    * Sizes that are known, or that have all their unknown factors in common, are placed when compiling.
      Otherwise the same algorithm runs in a call whose sizes differ from those of the call before.
    * The memory is taken by `graphc_workspace_<n>(bytes)` or `graphc_plan_<n>(sizes)`, which give null where
      there is none; a size that is too large for any memory asks for -1 bytes. Sizes are computed before
      that, as far as that needs no element that the function computes; if it does, those buffers get a
      workspace of their own.
    * `graphc_buffer` and `graphc_planned_buffer` begin the lifetime of a buffer, `graphc_end` ends it. They
      are no code, but keep LLVM from moving an access out of the lifetime, and tell it that two buffers that
      live at the same time do not overlap.

    With the option `results`, buffers of known sizes whose lifetime ends before a result is first
    accessed lie in the result's memory, where that makes the workspace smaller: `graphc_scratch(address,
    offset, bytes)` begins their lifetime. A result lends no more than it has, and only to elements that
    are not larger than its own, as callers align its memory. The attribute `graphc.first_result` of the
    function says which arguments are results; what these hold when a call fails is not defined.

    Options:
        results: use the memory of results before it is written.
        record: describe the plan in the module's attribute `graphc.memory`, for the manifest.

    Source: Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020); XLA's
    buffer assignment; PyTensor's allocation of temporaries in its virtual machine.
    """

    record: bool = False
    results: bool = False

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        records: list[dict[str, Any]] = []
        count = 0
        for function in functions(module):
            if len(function.regions[0].blocks) != 1:
                continue
            for block in blocks_outside_loops(function):
                is_whole = block == function.regions[0].blocks[0]
                planner = Planner(module, block, in_results=self.results and is_whole)
                workspaces = planner.plan(count)
                if self.record and (is_whole or _allocates(block)):
                    records.append(record_function(function, planner.lifetimes, workspaces, planner.rooms))
                planner.put_in_results()
                if planner.rooms:
                    self.count("buffers in results", sum(len(room.buffers) for room in planner.rooms))
                for workspace in workspaces:
                    planner.rewrite(workspace)
                    self.count("buffers", len(workspace.buffers))
                for name, number in planner.left.items():
                    self.count(name, number)
                count += len(workspaces)
        self.count("workspaces", count)
        if self.record:
            attach(module, records)


def _allocates(block: ir.Block) -> bool:
    return any(op.operation.name in ("memref.alloc", "memref.alloca") for op in block.operations)
