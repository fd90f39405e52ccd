# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks over IR: from values to their definitions, from operations to what they use, and copies of both."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from graphc_dialects._base import constant_value
from graphc_dialects._mlir import ir
from graphc_dialects.walk import is_inside as is_inside
from graphc_dialects.walk import walk as walk
from graphc_dialects.walk import walk_for as walk_for

# Beginnings of the names of functions that outline-loops and parallel-loops have made of loops.
LOOPS = ("graphc_part_", "graphc_body_")


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


def definition(value: ir.Value, *names: str) -> ir.Operation | None:
    """The operation that defines a value, if it is one of some names; None for others and block arguments."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) or (names and owner.name not in names) else owner.operation


def block_of(value: ir.Value) -> ir.Block:
    """The block that defines a value, or whose argument it is."""
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def is_parameter(value: ir.Value) -> bool:
    """True if a value is an argument of a function."""
    owner = value.owner
    return isinstance(owner, ir.Block) and bool(owner.owner.operation.name == "func.func")


def is_defined_in(value: ir.Value, block: ir.Block) -> bool:
    """True if an operation of a block defines a value."""
    op = definition(value)
    return op is not None and bool(op.block == block)


def location_of(value: ir.Value, otherwise: ir.Operation) -> ir.Location:
    """The location of the definition of a value; for block arguments that of another operation."""
    return (definition(value) or otherwise).location


def seen_through(value: ir.Value, names: Container[str]) -> ir.Value:
    """The value before operations of some names, of which each is made of its first operand."""
    while (op := definition(value)) is not None and op.name in names:
        value = op.operands[0]
    return value


def incoming(value: ir.Value) -> list[ir.Value]:
    """The values one of which a value is, where control flow brings it here; none for others.

    Of what a loop carries, the first is the value that it starts with.
    """
    is_argument = isinstance(value.owner, ir.Block)
    op = (value.owner.owner if is_argument else value.owner).operation
    if op.name == "arith.select":
        return list(op.operands)[1:]
    if op.name not in ("scf.for", "scf.while", "scf.if"):
        return []
    number = ir.BlockArgument(value).arg_number if is_argument else ir.OpResult(value).result_number
    blocks = blocks_of(op)
    ends = [block.operations[-1].operands for block in blocks]
    if op.name == "scf.if":
        return [given[number] for given in ends]
    if op.name == "scf.for":
        number -= is_argument
        return [] if number < 0 else [op.operands[3 + number], ends[0][number]]
    return [op.operands[number], ends[1][number]] if value.owner == blocks[0] else [ends[0][1 + number]]


def within(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The operation of a block that an operation is, or is part of."""
    while op.block != block:
        op = op.parent.operation
    return op


def ancestors(op: ir.Operation | None) -> list[ir.Operation]:
    """An operation and those around it, within its function, from the inside out."""
    found = []
    while op is not None and op.operation.name not in ("func.func", "builtin.module"):
        found.append(op.operation)
        op = op.operation.parent
    return found


def blocks_outside_loops(function: ir.Operation) -> list[ir.Block]:
    """The block of a function, and those of the regions of conditionals that are in no loop."""
    found = list(function.regions[0].blocks)
    for block in found:
        for op in block.operations:
            if op.operation.name == "scf.if":
                found += blocks_of(op.operation)
    return found


def blocks_of(op: ir.Operation) -> list[ir.Block]:
    """The blocks of the regions of an operation."""
    return [block for region in op.regions for block in region.blocks]


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
    low, high, step = map(constant_value, list(loop.operands)[:3])
    if low is None or high is None or not step:
        return None
    return max(-(-(high - low) // step), 0)


def named_attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    """The attributes of an operation."""
    return {name: op.attributes[name] for name in op.attributes}


def is_used(value: ir.Value) -> bool:
    """True if anything uses a value."""
    return next(iter(value.uses), None) is not None


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


def slice_of(
    ops: Sequence[ir.Operation], wanted: Iterable[ir.Value], known: Container[ir.Value] = ()
) -> list[ir.Operation]:
    """The operations that some values are computed by.

    Args:
        ops: in order.
        wanted: the values.
        known: what need not be computed.
    """
    needed = {value for value in wanted if value not in known}
    found = []
    for op in reversed(ops):
        if any(result in needed for result in op.results):
            found.append(op)
            needed.update(value for value in inputs_of(op) if value not in known)
    return found[::-1]


def use_instead(op: ir.Operation, new: Mapping[ir.Value, ir.Value]) -> None:
    """Gives an operation, and those in its regions, other operands for some."""
    for inner in [op, *walk(op)] if len(op.regions) else [op]:
        for place, operand in enumerate(inner.operands):
            if operand in new:
                inner.operands[place] = new[operand]


def copy_with(op: ir.Operation, new: dict[ir.Value, ir.Value]) -> ir.Operation:
    """Copies an operation to the insertion point.

    Args:
        op: the operation.
        new: values that the copy, and what is in its regions, uses instead of others; gains its results.

    Returns:
        The copy.
    """
    copy = op.clone()
    use_instead(copy, new)
    new.update(zip(op.results, copy.results, strict=True))
    return copy


def copied(value: ir.Value, new: dict[ir.Value, ir.Value], takes: Callable[[ir.Operation], bool]) -> ir.Value:
    """A value at the insertion point, computed there as far as that is wanted.

    Args:
        value: the value.
        new: values that stand for others; gains the results of copies.
        takes: of an operation, whether it is copied, with what its operands need of others.
    """
    if value in new or isinstance(value.owner, ir.Block) or not takes(value.owner.operation):
        return new.get(value, value)
    for operand in value.owner.operands:
        copied(operand, new, takes)
    copy_with(value.owner.operation, new)
    return new[value]


def readers(value: ir.Value) -> list[ir.Operation]:
    """The operations that read more of a value than its sizes, and are read themselves."""
    found = []
    for use in value.uses:
        user = use.owner.operation
        unread = len(user.results) and all(next(x.uses, None) is None for x in user.results)
        if user.name != "tensor.dim" and not unread:
            found.append(user)
    return found
