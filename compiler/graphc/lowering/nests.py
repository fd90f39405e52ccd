# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nests (`linalg.generic`) of tensors and of buffers, that are no clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphc.ir import build
from graphc_dialects._mlir import ir

Axes = Sequence[int | None]


def nest(
    inputs: Sequence[tuple[ir.Value, Axes]],
    outputs: Sequence[tuple[ir.Value, Axes]],
    reduced: Sequence[bool],
    body: Callable[[list[ir.Value]], Sequence[ir.Value]],
    **attributes: ir.Attribute,
) -> ir.Operation:
    """A `linalg.generic` at the insertion point.

    Args:
        inputs, outputs: tensors or buffers, each with its dimensions as those of the nest (None: index 0).
        reduced: for each dimension of the nest, whether it is reduced.
        body: gives the new elements of the outputs, of those of all operands.
        attributes: more of them.
    """
    operands, rank = [*inputs, *outputs], len(reduced)
    maps = [
        ir.AffineMap.get(
            rank,
            0,
            [ir.AffineExpr.get_constant(0) if a is None else ir.AffineExpr.get_dim(a) for a in axes],
        )
        for _, axes in operands
    ]
    kinds = [f"#linalg.iterator_type<{'reduction' if each else 'parallel'}>" for each in reduced]
    made = ir.Operation.create(
        "linalg.generic",
        results=[x.type for x, _ in outputs if isinstance(x.type, ir.RankedTensorType)],
        operands=[x for x, _ in operands],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(each) for each in maps]),
            "iterator_types": ir.ArrayAttr.get([ir.Attribute.parse(kind) for kind in kinds]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
            **attributes,
        },
        regions=1,
    )
    block = ir.Block.create_at_start(made.regions[0], [x.type.element_type for x, _ in operands])
    with ir.InsertionPoint(block):
        build.create("linalg.yield", [], list(body(list(block.arguments))))
    return made


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
    operands = [
        (x, [None if size == 1 else axis for axis, size in enumerate(ir.RankedTensorType(x.type).shape)])
        for x in inputs
    ]
    made = nest(operands, [(target, range(rank))], [False] * rank, lambda given: [body(given[:-1])])
    return made.results[0]


def position(axis: int) -> ir.Value:
    """Index of an element along an axis, in the body of a nest."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return build.create("linalg.index", [build.index_type()], [], dim=number).result
