# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves index arithmetic up in its block, so that it is known earlier."""

from __future__ import annotations

from collections.abc import Iterable

from graphc.ir.walk import ancestors
from graphc_dialects._mlir import ir

_MOVABLE = ("arith.", "tensor.dim")
# These fail for some operands.
_FIXED = frozenset({"arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"})


def move_up(values: Iterable[ir.Value], anchor: ir.Operation) -> bool:
    """Moves what computes values before an operation, if that is possible for all of them.

    Args:
        values: index or i1 values; those of regions that the anchor is not in cannot be moved.
        anchor: the operation they must be known before.

    Returns:
        Whether they now are. Nothing is moved otherwise.
    """
    later = operations_after(anchor)
    needed: dict[ir.Operation, int] = {}
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            if owner != anchor.block and not _encloses(owner, anchor):
                return False
            continue
        op = owner.operation
        if op.block != anchor.block and not _encloses(op.block, anchor):
            return False
        if op in needed or not (op in later or op == anchor):
            continue
        if op == anchor or not _is_safe(op):
            return False
        needed[op] = later[op]
        pending.extend(op.operands)
    for op in sorted(needed, key=needed.__getitem__):
        op.move_before(anchor)
    return True


def _is_safe(op: ir.Operation) -> bool:
    """True if an operation may run although it might not have been reached."""
    if op.name == "tensor.extract":
        return len(op.operands) == 1
    return op.name.startswith(_MOVABLE) and op.name not in _FIXED


def operations_after(anchor: ir.Operation) -> dict[ir.Operation, int]:
    """The operations after an operation in its block, numbered in order."""
    found: dict[ir.Operation, int] = {}
    after = False
    for position, op in enumerate(anchor.block.operations):
        if after:
            found[op.operation] = position
        after = after or op.operation == anchor
    return found


def _encloses(block: ir.Block, op: ir.Operation) -> bool:
    return any(around.block == block for around in ancestors(op))
