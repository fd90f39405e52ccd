# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products as generics on tensors, and what stands before them when they are on buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from graphc.ir import build
from graphc.lowering.scalar import Scalar, ScalarBuilder
from graphc_dialects._mlir import ir

# The attribute of a `linalg.generic` that is a product of matrices: which operands are transposed.
IS_PRODUCT = "graphc.matmul"
# What may stand between the fill of a result and its product: operations that read no elements (the body of
# the fill itself among them).
_TRANSPARENT = (
    "arith.",
    "linalg.fill",
    "linalg.yield",
    "memref.alloc",
    "memref.cast",
    "memref.collapse_shape",
    "memref.dim",
    "memref.expand_shape",
    "memref.subview",
)


def contraction(
    a: ir.Value,
    b: ir.Value,
    start: ir.Value,
    axes: tuple[list[int], list[int]],
    dtype: np.dtype,
    flags: list[bool],
) -> ir.Value:
    """`sum_k a * b` into `start`; `axes` gives the loop dimension of each operand dimension.

    Both sides may be halves where `dtype`, that of `start`, is float32.
    """
    rank = ir.RankedTensorType(start.type).rank + 1
    maps = [
        ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(axis) for axis in operand]))
        for operand in (*axes, list(range(rank - 1)))
    ]
    kinds = ["parallel"] * (rank - 1) + ["reduction"]
    generic = ir.Operation.create(
        "linalg.generic",
        results=[start.type],
        operands=[a, b, start],
        attributes={
            "indexing_maps": ir.ArrayAttr.get(maps),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in kinds]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            IS_PRODUCT: ir.DenseBoolArrayAttr.get(flags),
        },
        regions=1,
    )
    elements = [ir.RankedTensorType(x.type).element_type for x in (a, b, start)]
    block = ir.Block.create_at_start(generic.regions[0], elements)
    with ir.InsertionPoint(block):
        s = ScalarBuilder(ir)
        work = np.dtype("uint8") if dtype == np.bool_ else dtype
        halves = [element != elements[2] for element in elements]
        given = [np.dtype("float16") if half else work for half in halves]
        sides = [Scalar(value, kind) for value, kind in zip(block.arguments, given, strict=True)]
        x, y, total = (s.cast(side, work) for side in sides)
        combined = s.or_(total, s.and_(x, y)) if dtype == np.bool_ else s.add(total, s.mul(x, y))
        build.create("linalg.yield", [], [combined.value])
    return generic.results[0]


def with_fills(operations: Iterable[ir.Operation]) -> Iterator[tuple[ir.Operation, ir.Operation | None]]:
    """The generics on buffers among operations, each with the fill with zeros that serves it alone."""
    fills: dict[ir.Value, ir.Operation] = {}
    for op in operations:
        if op.name == "linalg.generic":
            yield op, fills.get(op.operands[-1])
        # Whatever opens or ends a block clears too.
        if not op.name.startswith(_TRANSPARENT):
            fills.clear()
        elif op.name == "linalg.fill" and _is_zero(op.operands[0]):
            fills[op.operands[1]] = op


def _is_zero(value: ir.Value) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "arith.constant":
        attribute = owner.attributes["value"]
        return isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) and attribute.value == 0
    return owner.name == "complex.create" and all(map(_is_zero, owner.operands))
