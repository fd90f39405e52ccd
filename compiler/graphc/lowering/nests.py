# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise nests that are no clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc_dialects._mlir import ir


def elementwise(
    inputs: Sequence[ir.Value], target: ir.Value, body: Callable[[Sequence[ir.Value]], ir.Value]
) -> ir.Value:
    """A `linalg.generic` that computes each element of a tensor for itself.

    Args:
        inputs: tensors of the same rank; they are repeated along dimensions in which their type has 1.
        target: the tensor to start from, without contents.
        body: gives the new element, of those of the inputs; `position` says where it is.

    Returns:
        The tensor with its elements.
    """
    rank = ir.RankedTensorType(target.type).rank
    maps = [
        ir.AffineMap.get(
            rank,
            0,
            [
                ir.AffineExpr.get_constant(0) if size == 1 else ir.AffineExpr.get_dim(axis)
                for axis, size in enumerate(ir.RankedTensorType(x.type).shape)
            ],
        )
        for x in inputs
    ]
    maps.append(ir.AffineMap.get_identity(rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ir.Operation.create(
        "linalg.generic",
        results=[target.type],
        operands=[*inputs, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
            "iterator_types": ir.ArrayAttr.get([parallel] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    elements = [ir.RankedTensorType(x.type).element_type for x in (*inputs, target)]
    block = ir.Block.create_at_start(generic.regions[0], elements)
    with ir.InsertionPoint(block):
        build.create("linalg.yield", [], [body(list(block.arguments)[:-1])])
    return generic.results[0]


def position(axis: int) -> ir.Value:
    """Index of an element along an axis, in the body of a nest."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return build.create("linalg.index", [build.index_type()], [], dim=number).result
