# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finding operations, splitting blocks, counting iterations."""

from __future__ import annotations

from typing import Any

from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.walk import is_inside, walk, walk_for

# Beginnings of the names of functions that outline-loops and parallel-loops have made of loops.
LOOPS = ("graphc_part_", "graphc_body_")

__all__ = [
    "LOOPS",
    "blocks_outside_loops",
    "functions",
    "inputs_of",
    "is_inside",
    "is_used_once",
    "split_after",
    "static_steps",
    "walk",
    "walk_for",
]


def functions(module: ir.Module) -> list[ir.Operation]:
    """The `func.func` operations of a module that have a body."""
    found = [op.operation for op in module.body.operations]
    return [op for op in found if op.name == "func.func" and len(op.regions[0].blocks)]


def symbol_of(op: ir.Operation) -> str:
    """The name of a function, or of another operation that has one; else nothing."""
    attributes = op.attributes
    return str(ir.StringAttr(attributes["sym_name"]).value) if "sym_name" in attributes else ""


def signature_of(function: ir.Operation) -> ir.FunctionType:
    """The type of a `func.func`."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def blocks_outside_loops(function: ir.Operation) -> list[ir.Block]:
    """The block of a function, and those of the regions of conditionals that are in no loop."""
    found = list(function.regions[0].blocks)
    for block in found:
        for op in block.operations:
            if op.operation.name == "scf.if":
                found += [inner for region in op.operation.regions for inner in region.blocks]
    return found


def split_after(op: ir.Operation) -> ir.Block:
    """Moves everything after an op into a new block after its own, which is left without terminator."""
    block = op.operation.block
    rest = block.create_after()
    found = False
    for other in [other.operation for other in block.operations]:
        if found:
            rest.append(other)
        found = found or other == op.operation
    return rest


def static_steps(loop: ir.Operation) -> int | None:
    """The number of iterations of an `scf.for`, if it is known."""
    low, high, step = (constant_value(value) for value in list(loop.operands)[:3])
    if low is None or high is None or not step:
        return None
    return max(-(-(high - low) // step), 0)


def is_used_once(value: ir.Value) -> bool:
    """True if a value has one use."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def inputs_of(op: Any) -> list[ir.Value]:
    """The operands of an op, and the values from outside that operations in its regions use, each once."""
    if not len(op.regions):
        return list(op.operands)
    inside = walk(op)
    own = {result for inner in inside for result in inner.results}
    for inner in [op, *inside]:
        own.update(a for region in inner.regions for block in region.blocks for a in block.arguments)
    return list(dict.fromkeys(x for inner in [op, *inside] for x in inner.operands if x not in own))
