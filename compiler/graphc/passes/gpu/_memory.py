# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allocation sizes as keys, so equal sizes compare equal."""

from __future__ import annotations

from typing import TypeAlias

from graphc.ir import build
from graphc.ir.lifetimes import root_of
from graphc_dialects._mlir import ir

# A number, a value, or a buffer and an axis: sizes with equal keys are equal.
SizeKey: TypeAlias = "int | ir.Value | tuple[ir.Value, int]"


def size_key(buffer: ir.Value, axis: int) -> SizeKey:
    """Key of the size of a buffer along an axis."""
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
    source, where = made.operands[0], build.constant_value(made.operands[1])
    # MLIR lets an axis be asked for that there is not, as long as nothing runs.
    if where is None or not 0 <= where < ir.MemRefType(source.type).rank:
        return value
    return size_key(source, where)


def splat_of(buffer: ir.Value) -> ir.Value | None:
    """The real number that all elements of a constant array are, at the insertion point, or None."""
    owner, kind = root_of(buffer).owner, ir.MemRefType(buffer.type).element_type
    if isinstance(owner, ir.Block) or owner.name != "memref.get_global" or isinstance(kind, ir.ComplexType):
        return None
    module = owner.operation
    while module.name != "builtin.module":
        module = module.parent.operation
    name = ir.FlatSymbolRefAttr(owner.attributes["name"]).value
    for op in module.regions[0].blocks[0].operations:
        attributes = op.operation.attributes
        if op.operation.name == "memref.global" and ir.StringAttr(attributes["sym_name"]).value == name:
            value = attributes["initial_value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return build.create("arith.constant", [kind], [], value=value.get_splat_value()).result
    return None
