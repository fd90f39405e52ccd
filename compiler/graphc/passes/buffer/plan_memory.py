# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intermediate buffers get places in one workspace.

The plan goes to the manifest as plain data, which `Function.memory_plan` shows.

`{"expressions", "workspaces", "steps", "others", "copies"}`. Sizes are numbers of expressions: each is a list
of an operation and its operands, which are numbers of earlier expressions (see `Expressions`). Positions are
those of operations in the block; `steps` names the ones that access memory. A region of a conditional has a
record of its own.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from graphc.ir import plain
from graphc.ir.diagnostics import fail, node_of
from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import VIEWS, Lifetimes, root_of
from graphc.ir.walk import ancestors, blocks_outside_loops, functions, is_parameter, walk_for
from graphc.library.places import Interval, aligned, first_fit
from graphc.lowering.converter import FIRST_RESULT
from graphc.lowering.memory.layouts import size_of
from graphc.passes import Pass
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer._workspace import (
    Buffer,
    Code,
    Mover,
    Place,
    Workspace,
    buffer_size,
    item_size,
)
from graphc_dialects._base import constant_value
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
        """Offset that fits a buffer beside those that live at the same time; None if there is none."""
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


_MOST_OPERATIONS = 24
_AROUND = ("scf.for", "scf.yield", "memref.load", "memref.store", "memref.subview", "memref.dim")
_COORDINATES = ("arith.constant", "arith.addi", "arith.subi", "arith.muli")


@record(frozen=True)
class Copy:
    """A copy.

    Attributes:
        source, target: what kind of memory: "input", "result", or "buffer".
        sizes: index values or numbers whose product is the number of elements.
        item: bytes of an element.
        why: the reason, as far as it is known.
    """

    source: str
    target: str
    sizes: list[ir.Value]
    item: int
    why: str


def find_copy(op: ir.Operation) -> Copy | None:
    """The copy that an operation is, or None."""
    if op.name == "memref.copy":
        source, target = op.operands
        return _copy(source, target, [size_of(source, axis) for axis in range(source.type.rank)])
    if op.name != "scf.for":
        return None
    inside = _parts(op)
    if inside is None:
        return None
    loads = [inner for inner in inside if inner.name == "memref.load"]
    stores = [inner for inner in inside if inner.name == "memref.store"]
    if len(loads) != 1 or len(stores) != 1 or stores[0].operands[0] != loads[0].results[0]:
        return None
    source, target = loads[0].operands[0], stores[0].operands[1]
    if source == target:
        return None
    loops = [op, *(inner for inner in inside if inner.name == "scf.for")]
    return _copy(source, target, [_trips(loop) for loop in loops])


def _parts(loop: ir.Operation) -> list[ir.Operation] | None:
    """The operations in a loop; None if there are many, or others than those of a copy."""
    found: list[Any] = []
    fits = True

    def visit(op: ir.Operation) -> ir.Operation:
        nonlocal fits
        fits = len(found) <= _MOST_OPERATIONS and (op.name in _AROUND or op.name in _COORDINATES)
        found.append(op)
        return ir.WalkResult.ADVANCE if fits else ir.WalkResult.INTERRUPT

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:] if fits else None


def _trips(loop: ir.Operation) -> ir.Value | None:
    low, high, step = loop.operands[:3]
    return high if constant_value(low) == 0 and constant_value(step) == 1 else None


def _copy(source: ir.Value, target: ir.Value, sizes: list[Any]) -> Copy:
    origin, place = root_of(source), root_of(target)
    kinds = _kind(origin), _kind(place)
    why = _why(kinds, target == place, _reads(origin) > 1)
    return Copy(*kinds, sizes, item_size(source.type.element_type) or 0, why)


def _why(kinds: tuple[str, str], whole: bool, shared: bool) -> str:
    if kinds[0] == "input" and not whole:
        return "an input becomes part of a larger array"
    if kinds[0] == "input":
        return (
            "a result must not share memory with an input" if kinds[1] == "result" else "an input is changed"
        )
    if kinds == ("result", "result") and whole:
        return "two results must not share memory"
    part = "the value was not computed in its place" + ("" if whole else " in the larger array")
    return part + ("; it is read elsewhere too" if shared else "")


def _reads(memref: ir.Value) -> int:
    """The number of loads and copies from a memref and its views."""
    count = 0
    for use in memref.uses:
        op = use.owner.operation
        if op.name == "memref.load" or (op.name == "memref.copy" and use.operand_number == 0):
            count += 1
        elif op.name in VIEWS:
            count += _reads(op.results[0])
    return count


def _kind(memref: ir.Value) -> str:
    if not is_parameter(memref):
        return "buffer"
    return "result" if _is_written(memref, set()) else "input"


def _is_written(memref: ir.Value, seen: set[ir.Operation]) -> bool:
    """True if a store or a copy writes to a memref or a view of it."""
    for use in memref.uses:
        op = use.owner.operation
        if (op.name, use.operand_number) in (("memref.store", 1), ("memref.copy", 1)):
            return True
        if op.name in VIEWS and op not in seen:
            seen.add(op)
            if _is_written(op.results[0], seen):
                return True
    return False


MEMORY = "graphc.memory"
_STEPS = ("scf.", "func.call", "memref.copy", "memref.store", "linalg.")


def record_function(
    function: ir.Operation, lifetimes: Lifetimes, workspaces: list[Workspace], rooms: list[Room]
) -> dict[str, object]:
    """The record of a function, or of a region in it, made before its buffers get their places."""
    return _Record(lifetimes).of(function.attributes["sym_name"].value, workspaces, rooms)


def attach(module: ir.Module, records: list[dict[str, object]]) -> None:
    """Stores the records of all functions in the module's attribute `graphc.memory`."""
    module.operation.attributes[MEMORY] = plain.write(records)


def attached(module: ir.Module) -> list[dict[str, Any]]:
    """The records of all functions; empty where a pipeline was asked for that makes none."""
    attributes = module.operation.attributes
    return list(plain.read(attributes[MEMORY])) if MEMORY in attributes else []


def _origin(alloc: ir.Operation, stored: list[ir.Value]) -> str:
    """The node whose value a buffer holds: of all that is stored in it, if that is one."""
    owners = [value.owner.operation for value in stored if not isinstance(value.owner, ir.Block)]
    nodes = {node_of(op) for op in owners if op.name != "arith.constant"} - {""}
    return nodes.pop() if len(nodes) == 1 else node_of(alloc)


def _planned_block(op: ir.Operation) -> ir.Block:
    """The block whose plan is about an operation: of the function, or of a region of a conditional."""
    chain = [around.block for around in ancestors(op)]
    found = chain.pop()
    while chain and chain[-1].owner.operation.name == "scf.if":
        found = chain.pop()
    return found


class _Record:
    def __init__(self, lifetimes: Lifetimes) -> None:
        self._lifetimes = lifetimes
        self._expressions = Expressions()

    def of(self, name: str, workspaces: list[Workspace], rooms: list[Room]) -> dict[str, Any]:
        planned = {buffer.alloc for workspace in workspaces for buffer in workspace.buffers}
        lent = {buffer.alloc: room.number for room in rooms for buffer in room.buffers}
        record = {
            "function": name,
            "workspaces": [self._workspace(workspace) for workspace in workspaces],
            "steps": [
                [position, node_of(op), callee_of(op) if op.name == "func.call" else op.name]
                for position, op in self._accesses()
            ],
            "others": self._others(planned, lent),
            "copies": self._copies(),
        }
        return {**record, "expressions": self._expressions.nodes}

    def _workspace(self, workspace: Workspace) -> dict[str, Any]:
        buffers = []
        for buffer in workspace.buffers:
            entry = self._buffer(buffer.alloc, buffer.stored)
            entry.update(first=buffer.interval.first, last=buffer.interval.last, units=buffer.size.units)
            entry.update(key=workspace.key(buffer))
            buffers.append({**entry, "offset": buffer.offset} if workspace.is_fixed else entry)
        keys = [[self._expressions.number(value) for value in key] for key in workspace.keys]
        return {
            "number": workspace.number,
            "fixed": workspace.is_fixed,
            "peak": workspace.peak,
            "keys": keys,
            "buffers": buffers,
        }

    def _buffer(self, op: ir.Operation, stored: list[ir.Value]) -> dict[str, object]:
        kind = op.results[0].type
        dynamic = iter(op.operands)
        shape = [size if size >= 0 else [self._expressions.number(next(dynamic))] for size in kind.shape]
        return {"dtype": str(kind.element_type), "shape": shape, "node": _origin(op, stored)}

    def _accesses(self) -> list[tuple[int, ir.Operation]]:
        operations = self._lifetimes.operations
        return [(i, op) for i, op in enumerate(operations) if op.name.startswith(_STEPS)]

    def _others(self, planned: set[ir.Operation], lent: dict[ir.Operation, int]) -> list[dict[str, Any]]:
        """Buffers that are not in a workspace: on the stack, in the arena, or in the memory of a result."""
        found = []
        function = self._lifetimes.block.owner.operation
        for op in walk_for(function, ("memref.alloc", "memref.alloca")):
            if op not in planned:
                if _planned_block(op) != self._lifetimes.block:
                    continue
                uses = self._lifetimes.uses(op.results[0])
                if not uses.positions:
                    continue
                life = self._lifetimes.interval(uses)
                entry = self._buffer(op, uses.stored)
                place = f"result {lent[op]}" if op in lent else "arena"
                entry.update(place="stack" if op.name == "memref.alloca" else place)
                item = item_size(op.results[0].type.element_type) or 0
                found.append({**entry, "first": life.first, "last": life.last, "item": item})
        return found

    def _copies(self) -> list[dict[str, Any]]:
        found = []
        for position, op in self._accesses():
            copy = find_copy(op)
            if copy is not None:
                sizes = [self._expressions.number(size) for size in copy.sizes]
                entry = {"at": position, "node": node_of(op), "from": copy.source, "to": copy.target}
                found.append({**entry, "item": copy.item, "sizes": sizes, "why": copy.why})
        return found


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
                self.count_all(planner.left)
                count += len(workspaces)
        self.count("workspaces", count)
        if self.record:
            attach(module, records)


def _allocates(block: ir.Block) -> bool:
    return any(op.operation.name in ("memref.alloc", "memref.alloca") for op in block.operations)
