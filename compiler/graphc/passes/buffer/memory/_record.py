# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory plan as plain data, for the manifest: what `Function.memory_plan` shows.

`{"expressions", "workspaces", "steps", "others", "copies"}`. Sizes are numbers of expressions: each is a list
of an operation and its operands, which are numbers of earlier expressions (see `Expressions`). Positions are
those of operations in the block; `steps` names the ones that access memory. A region of a conditional has a
record of its own.
"""

from __future__ import annotations

from typing import Any

from graphc.ir import plain
from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import Lifetimes
from graphc.ir.locations import node_of
from graphc.ir.walk import walk_for
from graphc.passes.buffer._expressions import Expressions
from graphc.passes.buffer.memory._buffer_sizes import item_size
from graphc.passes.buffer.memory._copies import find_copy
from graphc.passes.buffer.memory._scratch import Room
from graphc.passes.buffer.memory._workspace import Workspace
from graphc_dialects._mlir import ir

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
    chain = []
    while op.name != "func.func":
        chain.append(op.block)
        op = op.parent.operation
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
            "steps": [self._step(i, op) for i, op in self._accesses()],
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

    def _step(self, position: int, op: ir.Operation) -> list[int | str]:
        what = callee_of(op) if op.name == "func.call" else op.name
        return [position, node_of(op), what]

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
