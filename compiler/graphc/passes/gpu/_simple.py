# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills and copies as generics, so that kernels are made of one operation only."""

from __future__ import annotations

from graphc.ir import build
from graphc_dialects._mlir import ir

NESTS = ("linalg.generic", "linalg.fill", "memref.copy")


def as_generic(op: ir.Operation) -> ir.Operation | None:
    """The generic that an operation is, or is replaced by; None if it is nothing of the kind."""
    if op.name == "linalg.generic":
        return op
    if op.name == "linalg.fill":
        value, buffer = op.operands
        return _replace(op, [], buffer, value)
    if op.name == "memref.copy":
        source, target = op.operands
        if source != target:
            return _replace(op, [source], target, None)
        op.erase()
    return None


def _replace(
    op: ir.Operation, inputs: list[ir.Value], output: ir.Value, value: ir.Value | None
) -> ir.Operation:
    memref = ir.MemRefType(output.type)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(memref.rank))
    operands = [*inputs, output]
    attributes = {
        "indexing_maps": ir.ArrayAttr.get([identity] * len(operands)),
        "iterator_types": ir.ArrayAttr.get(
            [ir.Attribute.parse("#linalg.iterator_type<parallel>")] * memref.rank
        ),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
    }
    with ir.InsertionPoint(op), op.location:
        generic = ir.Operation.create("linalg.generic", operands=operands, attributes=attributes, regions=1)
        block = ir.Block.create_at_start(generic.regions[0], [memref.element_type] * len(operands))
        with ir.InsertionPoint(block):
            build.create("linalg.yield", [], [block.arguments[0] if value is None else value])
    op.erase()
    return generic
