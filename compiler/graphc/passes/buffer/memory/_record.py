# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory plan as plain data, for the manifest: what `Function.memory_plan` shows.

`{"expressions", "workspaces", "steps", "others", "copies"}`. Sizes are numbers of expressions: each is a list
of an operation and its operands, which are numbers of earlier expressions (see `_Expressions`). Positions are
those of operations in the block; `steps` names the ones that access memory. A region of a conditional has a
record of its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from functools import reduce
from typing import Any

from graphc.ir import plain
from graphc.ir.helpers import callee_of
from graphc.ir.index_code import predicate_of
from graphc.ir.lifetimes import Lifetimes
from graphc.ir.locations import node_of
from graphc.ir.walk import walk_for
from graphc.passes.buffer.memory._buffer_sizes import item_size, size_of
from graphc.passes.buffer.memory._copies import find_copy
from graphc.passes.buffer.memory._workspace import Workspace
from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir

MEMORY = "graphc.memory"
_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_BINARY = frozenset(
    "addi subi muli maxsi minsi maxui minui andi ori xori "
    "divsi divui remsi remui floordivsi ceildivsi".split()
)
_STEPS = ("scf.", "func.call", "memref.copy", "memref.store", "linalg.")


def record_function(
    function: ir.Operation, lifetimes: Lifetimes, workspaces: list[Workspace]
) -> dict[str, Any]:
    """The record of a function, or of a region in it, made before its buffers get their places."""
    return _Record(lifetimes).of(function.attributes["sym_name"].value, workspaces)


def attach(module: ir.Module, records: list[dict[str, Any]]) -> None:
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
        self._expressions = _Expressions()

    def of(self, name: str, workspaces: list[Workspace]) -> dict[str, Any]:
        planned = {buffer.alloc for workspace in workspaces for buffer in workspace.buffers}
        record = {
            "function": name,
            "workspaces": [self._workspace(workspace) for workspace in workspaces],
            "steps": [self._step(i, op) for i, op in self._accesses()],
            "others": self._others(planned),
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

    def _buffer(self, op: ir.Operation, stored: list[ir.Value]) -> dict[str, Any]:
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

    def _others(self, planned: set[ir.Operation]) -> list[dict[str, Any]]:
        """Buffers that are not in a workspace: on the stack, or in the arena."""
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
                entry.update(place="stack" if op.name == "memref.alloca" else "arena")
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


def _operands_first(value: ir.Value, known: Container[Any]) -> Iterator[ir.Value]:
    """The values that an arithmetic value is computed from, each after its operands, and then itself, without
    those that are known. Sums of many sizes are too deep for recursion.
    """
    stack = [(value, 0)]
    while stack:
        value, done = stack.pop()
        if value in known:
            continue
        owner = value.owner
        if not isinstance(owner, ir.Block) and (owner.name.startswith("arith.") or owner.name in _CASTS):
            if done < len(owner.operands):
                stack += [(value, done + 1), (owner.operands[done], 0)]
                continue
        yield value


class _Expressions:
    """Index values as expressions of the sizes of arguments.

    Attributes:
        nodes: `["const", n]`, `["dim", argument, axis]`, `["value", argument]`, `["cmpi", predicate, a, b]`,
            `["select", c, a, b]`, `["addi", a, b]` and the like; `["?"]` for what depends on more than the
            arguments.
    """

    def __init__(self) -> None:
        self.nodes: list[list[int | str]] = []
        self._numbers: dict[ir.Value, int] = {}
        self._known: dict[str, int] = {}

    def number(self, value: ir.Value | tuple[int, int] | None) -> int:
        """The number of the expression of a value, or of what `size_of` gave."""
        if value is None:
            return self._add(["?"])
        if isinstance(value, int):
            return self._add(["const", value])
        if isinstance(value, tuple):
            return self._add(["dim", *value])
        if isinstance(value, list):
            parts = [self.number(part) for part in value]
            return reduce(lambda a, b: self._add(["muli", a, b]), parts)
        for known in _operands_first(value, self._numbers):
            self._numbers[known] = self._number(known)
        return self._numbers[value]

    def _number(self, value: ir.Value) -> int:
        if isinstance(value.owner, ir.Block):
            return self._add(["?"])
        op = value.owner.operation
        name = op.name
        if name in _CASTS:
            return self.number(op.operands[0])
        if name == "arith.constant":
            constant = constant_value(value)
            return self._add(["?"] if constant is None else ["const", constant])
        if name == "memref.dim":
            axis = constant_value(op.operands[1])
            return self.number(None if axis is None else size_of(op.operands[0], axis))
        if name == "memref.load" and len(op.operands) == 1 and isinstance(op.operands[0].owner, ir.Block):
            return self._add(["value", op.operands[0].arg_number])
        operands = [self.number(x) for x in op.operands] if name.startswith("arith.") else []
        short = name.removeprefix("arith.")
        if short == "cmpi":
            return self._add(["cmpi", predicate_of(op), *operands])
        if short == "select" or short in _BINARY:
            return self._add([short, *operands])
        return self._add(["?"])

    def _add(self, node: list[int | str]) -> int:
        key = str(node)
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return self._known[key]
