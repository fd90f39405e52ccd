# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.update_slice` and `graphc.put`: writes into part of a tensor."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.ownership import updates_argument, updates_in_place
from graphc.ir.value import as_index
from graphc.ir.views import accumulates, axis_of, is_in_range
from graphc.lowering.carried import carry_over, spans
from graphc.lowering.rules import Conversion, lowers
from graphc.lowering.scalar_builder import Scalar, ScalarBuilder
from graphc_dialects._mlir import ir

Indices = list[ir.Value]


def _sum(dtype: np.dtype, old: ir.Value, new: ir.Value) -> ir.Value:
    """old + new on storage values."""
    b = ScalarBuilder(ir)
    if dtype == np.bool_:
        return b.or_(Scalar(old, np.dtype("uint8")), Scalar(new, np.dtype("uint8"))).value
    return b.add(Scalar(old, dtype), Scalar(new, dtype)).value


def _to_update(context: Conversion, op: ir.Operation) -> ir.Value:
    """The tensor that an update starts from.

    It is a copy unless nothing else reads the old one. Bufferization would make that copy too; but the buffer
    of a result is chosen before it looks, for the whole chain of updates, and an older tensor of the chain
    that is still needed must not be in it.
    """
    x = op.operands[0]
    old = context.tensor_of(x)
    if updates_in_place(op) or updates_argument(op, context.donated.get(op.results[0])):
        return old

    # As a loop: upstream's canonicalization removes a copy that is a linalg operation.
    def copied(indices: Indices, carried: list[ir.Value]) -> list[ir.Value]:
        return [build.create("tensor.insert", [old.type], [old[indices], *carried, *indices]).result]

    sizes = context.sizes_of(x)
    start = context.destinations.start(op.results[0], old.type, sizes)
    return carry_over(sizes, [start], copied)[0]


def _update(
    context: Conversion,
    op: ir.Operation,
    sizes: list[ir.Value],
    element: Callable[[Indices], tuple[ir.Value, Indices]],
) -> None:
    """Sets or increases elements of an update's first operand, and defines its result.

    Args:
        context: the function conversion.
        op: the update.
        sizes: of what is visited.
        element: the new element for indices below the sizes, and where it belongs.
    """
    dtype = dtype_of(op.results[0].type.element_type)

    def changed(array: ir.Value, indices: Indices) -> tuple[ir.Value, Indices]:
        value, where = element(indices)
        return (_sum(dtype, array[where], value) if accumulates(op) else value), where

    def insert(indices: Indices, carried: list[ir.Value]) -> list[ir.Value]:
        (tensor,) = carried
        value, where = changed(tensor, indices)
        return [build.create("tensor.insert", [tensor.type], [value, tensor, *where]).result]

    memory = context.chains.memory(op)
    if memory is not None:
        with spans(sizes) as indices:
            value, where = changed(memory, indices)
            memory[where] = value
        context.chains.finish(op)
    else:
        (result,) = carry_over(sizes, [_to_update(context, op)], insert)
        context.define(op.results[0], build.cast(result, build.storage_type(op.results[0].type)))


@lowers("graphc.update_slice", starts_anywhere=True)
def update_slice(context: Conversion, op: ir.Operation) -> None:
    """x with the elements at `offset + i * stride` set to, or increased by, those of y.

    A loop writes element by element at the computed position, so any stride (also a negative one) is right;
    LLVM turns the unit-stride case into block copies.
    """
    y = context.tensor_of(op.operands[1])
    rank = ir.RankedTensorType(op.operands[0].type).rank
    positions = [context.index_of(v) for v in list(op.operands)[2:]]
    offsets, sizes, strides = positions[:rank], positions[rank : 2 * rank], positions[2 * rank :]

    def element(indices: Indices) -> tuple[ir.Value, Indices]:
        places = zip(offsets, indices, strides, strict=True)
        return y[indices], [offset + index * stride for offset, index, stride in places]

    _update(context, op, sizes, element)


@lowers("graphc.put", starts_anywhere=True)
def put(context: Conversion, op: ir.Operation) -> None:
    """x with rows along one axis set or increased at integer positions; duplicates act in order."""
    x = op.operands[0]
    y, positions = (context.tensor_of(v) for v in list(op.operands)[1:])
    axis = axis_of(op)
    index_rank = ir.RankedTensorType(positions.type).rank
    size = context.sizes_of(x)[axis]

    def element(indices: Indices) -> tuple[ir.Value, Indices]:
        inner = indices[axis : axis + index_rank]
        index = as_index(positions[inner])
        if not is_in_range(op):
            index = build.select(index < 0, index + size, index)
        return y[indices], [*indices[:axis], index, *indices[axis + index_rank :]]

    _update(context, op, build.dims(y), element)
