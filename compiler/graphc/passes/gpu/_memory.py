# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where memory comes from, and what its sizes are."""

from __future__ import annotations

from typing import TypeAlias

from graphc.ir import build
from graphc_dialects._mlir import ir

# A number, a value, or a buffer and an axis: sizes with equal keys are equal.
SizeKey: TypeAlias = "int | ir.Value | tuple[ir.Value, int]"

_VIEWS = frozenset(
    f"memref.{name}" for name in "cast collapse_shape expand_shape subview reinterpret_cast".split()
)


def root_of(buffer: ir.Value) -> ir.Value:
    """The value that a view, or a view of a view, was made of."""
    while not isinstance(buffer.owner, ir.Block) and buffer.owner.name in _VIEWS:
        buffer = buffer.owner.operands[0]
    return buffer


def size_key(buffer: ir.Value, axis: int) -> SizeKey:
    """What the size of a buffer along an axis is known as."""
    size = ir.MemRefType(buffer.type).shape[axis]
    if size >= 0:
        return size
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.name != "memref.alloc":
        return buffer, axis
    dynamic = [other for other, known in enumerate(ir.MemRefType(buffer.type).shape) if known < 0]
    value = owner.operands[dynamic.index(axis)]
    made = value.owner
    if isinstance(made, ir.Block) or made.name != "memref.dim":
        return value
    where = build.constant_value(made.operands[1])
    return value if where is None else size_key(made.operands[0], where)
