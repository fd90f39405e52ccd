# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loop nests of long functions become functions of their own.

What operations use from outside, when they move to a function of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.ir.copies import copy_with
from graphc.ir.helpers import callee_of
from graphc.ir.lifetimes import ROW
from graphc.ir.walk import blocks_outside_loops, functions, walk
from graphc.library.memory.access import PLACES
from graphc.passes.buffer.parallel._independence import is_view
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

if TYPE_CHECKING:
    from types import ModuleType


class Captured:
    """The values that operations of one block need as arguments.

    Memory is captured as a whole; views of it, constants and rows of single iterations are made again.

    Args:
        ops: the operations, each followed by those in its regions.
        without: values that they get in another way.

    Attributes:
        values: roots of memory and scalars, each once.
    """

    def __init__(self, ops: Sequence[ir.Operation], without: Sequence[ir.Value] = ()) -> None:
        self.values: list[ir.Value] = []
        self._again: list[ir.Operation] = []
        self._uses: list[tuple[ir.Operation, int, ir.Value]] = []
        seen: set[ir.Value] = set()
        own: set[ir.Value] = set()
        for op in ops:
            for i, value in enumerate(op.operands):
                if value not in own:
                    self._uses.append((op, i, value))
                    if value not in seen and value not in without:
                        self._need(value, seen)
            own.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    own.update(block.arguments)

    def _need(self, value: ir.Value, seen: set[ir.Value]) -> None:
        """Captures a value, or notes the operation that makes it, after those that make its operands."""
        owner = value.owner
        if isinstance(owner, ir.Block) or not _is_made_again(owner):
            seen.add(value)
            self.values.append(value)
            return
        seen.update(owner.results)
        for operand in owner.operands:
            if operand not in seen:
                self._need(operand, seen)
        self._again.append(owner.operation)

    def replace(self, arguments: Sequence[ir.Value]) -> None:
        """Makes the operations use arguments, and copies at the insertion point of what makes the rest."""
        new = dict(zip(self.values, arguments, strict=True))
        for op in self._again:
            copy_with(op, new)
        for op, i, value in self._uses:
            if value in new:
                op.operands[i] = new[value]


def _is_made_again(op: ir.Operation) -> bool:
    return bool(op.name == "arith.constant" or is_view(op) or ROW in op.attributes)


# What a nest may contain: nothing that needs the context of a call or may end it.
_ALLOWED = (
    "arith.",
    "math.",
    "complex.",
    "scf.for",
    "scf.if",
    "scf.yield",
    "memref.load",
    "memref.store",
    "memref.dim",
)
_ALLOCATIONS = ("memref.alloc", "memref.alloca")


@record()
class OutlineLoops(Pass):
    """Moves the loop nests of a long function to functions `@graphc_part_<n>(captured...)`.

    They are in the function's block, or in branches of conditionals there.

    Many of LLVM's passes look at a whole function for each of its loops, so that a function with n loops
    takes time n squared. A part is an `scf.for` with the stores of its results after it. It gets the memory
    that it uses as arguments, which do not overlap: different arguments of the function, allocations, or
    places of a workspace. Parts are not inlined; as LLVM drops arguments that nothing reads, calling one
    takes some ten nanoseconds. Functions with fewer than `minimum` such nests stay as they are.

    Left in their place are nests with calls, checks or allocations, those that use memory of unknown origin,
    and those whose results are used for anything but stores.

    Attributes:
        minimum: functions with this many nests are long.
    """

    minimum: int = 48

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            blocks = blocks_outside_loops(function)
            nests = sum(op.operation.name == "scf.for" for block in blocks for op in block.operations)
            if nests < self.minimum:
                continue
            parts = [part for block in blocks for part in _find(block)]
            if len(parts) >= self.minimum:
                for ops, captured in parts:
                    _outline(module, ops, captured, self.statistics.get("parts", 0))
                    self.count("parts")


def _find(block: ir.Block) -> list[tuple[list[Any], Any]]:
    """The nests of a block that can be parts, with the stores of their results."""
    operations = [op.operation for op in block.operations]
    found = []
    for position, op in enumerate(operations):
        if op.name != "scf.for":
            continue
        inside = walk(op)
        if not all(inner.name.startswith(_ALLOWED) or is_view(inner) for inner in inside):
            continue
        stores = _stores(operations, position)
        if stores is None:
            continue
        captured = Captured([op, *inside, *stores])
        if all(_is_known(ir, value) for value in captured.values):
            found.append(([op, *stores], captured))
    return found


def _stores(operations: list[ir.Operation], position: int) -> list[ir.Operation] | None:
    """The operations directly after a loop that store its results; None if others use them too."""
    results = set(operations[position].results)
    uses = sum(1 for result in results for _ in result.uses)
    stores = []
    for op in operations[position + 1 :] if results else ():
        if op.name != "memref.store" or op.operands[0] not in results:
            break
        stores.append(op)
    return stores if len(stores) == uses else None


def _is_known(ir: ModuleType, value: ir.Value) -> bool:
    """True if a value is a scalar, or memory that no other captured value overlaps."""
    if not isinstance(value.type, ir.MemRefType):
        return str(value.type) in ("index", "i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64")
    owner = value.owner
    if isinstance(owner, ir.Block):
        return bool(owner.owner.operation.name == "func.func")
    if owner.name == "func.call":
        return callee_of(owner) in PLACES
    return owner.name in _ALLOCATIONS


def _outline(module: ir.Module, ops: list[ir.Operation], captured: Captured, number: int) -> None:
    """Moves operations to a new function, and calls it in their place."""
    name = f"graphc_part_{number}"
    types = [value.type for value in captured.values]
    with ops[0].location:
        with ir.InsertionPoint(module.body):
            attributes = {
                "sym_name": ir.StringAttr.get(name),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "sym_visibility": ir.StringAttr.get("private"),
                "graphc.part": ir.UnitAttr.get(),
                "llvm.no_inline": ir.UnitAttr.get(),
            }
            part = ir.Operation.create("func.func", attributes=attributes, regions=1)
        callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
        ir.Operation.create("func.call", [], captured.values, callee, ip=ir.InsertionPoint(ops[0]))
        body = ir.Block.create_at_start(part.regions[0], types)
        with ir.InsertionPoint(body):
            end = ir.Operation.create("func.return")
        for op in ops:
            op.move_before(end)
        with ir.InsertionPoint(ops[0]):
            captured.replace(list(body.arguments))
