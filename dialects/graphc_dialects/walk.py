# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cheap walks over operations."""

from __future__ import annotations

from collections.abc import Collection

from graphc_dialects._mlir import ir


def walk(root: ir.Operation) -> list[ir.Operation]:
    """All operations below `root`, in order, without the cost of wrapping each in its class."""
    found: list[ir.Operation] = []
    append, advance = found.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        append(op)
        return advance

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def walk_for(root: ir.Operation, names: Collection[str]) -> list[ir.Operation]:
    """The operations of these names below `root`, in order: cheaper than to look through `walk(root)`."""
    found: list[ir.Operation] = []
    advance = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            found.append(op)
        return advance

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return [op for op in found if op != root]


def names_in(root: ir.Operation) -> set[str]:
    """The names of `root` and of the operations below it."""
    found: set[str] = set()
    add, advance = found.add, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        add(op.name)
        return advance

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def is_inside(value: ir.Value, op: ir.Operation) -> bool:
    """True if a value is defined in a region of an operation, at any depth."""
    owner = value.owner
    parent = owner.owner if isinstance(owner, ir.Block) else owner.operation.parent
    while parent.name not in ("func.func", "builtin.module"):
        if parent.operation == op:
            return True
        parent = parent.operation.parent
    return False
