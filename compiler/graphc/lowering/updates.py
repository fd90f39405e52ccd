# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.update_slice` and `graphc.put`: writes into part of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir import build
from graphc.ir.ownership import updates_in_place
from graphc.ir.types import dtype_of
from graphc.ir.views import accumulates, axis_of
from graphc.lowering.rules import lowers
from graphc.lowering.scalar import Scalar, ScalarBuilder
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


def _accumulates(op: ir.Operation) -> bool:
    return accumulates(op)


def _sum(dtype: np.dtype, old: ir.Value, new: ir.Value) -> ir.Value:
    """old + new on storage values."""
    b = ScalarBuilder(ir)
    if dtype == np.bool_:
        return b.or_(Scalar(old, np.dtype("uint8")), Scalar(new, np.dtype("uint8"))).value
    return b.add(Scalar(old, dtype), Scalar(new, dtype)).value


class _Loops:
    """A nest of `scf.for` loops that carries one tensor."""

    def __init__(self, sizes: list[ir.Value]) -> None:
        self._sizes = sizes

    def run(self, tensor: ir.Value, body: Any) -> ir.Value:
        """`body(tensor, indices) -> tensor`, executed for every index tuple in row-major order."""
        return self._nest(tensor, body, [])

    def _nest(self, tensor: ir.Value, body: Any, indices: list[ir.Value]) -> ir.Value:
        if len(indices) == len(self._sizes):
            return body(tensor, indices)
        bounds = [build.const_index(0), self._sizes[len(indices)], build.const_index(1)]
        loop = ir.Operation.create("scf.for", results=[tensor.type], operands=[*bounds, tensor], regions=1)
        block = ir.Block.create_at_start(loop.regions[0], [build.index_type(), tensor.type])
        with ir.InsertionPoint(block):
            position, carried = block.arguments
            build.create("scf.yield", [], [self._nest(carried, body, [*indices, position])])
        return loop.results[0]


def _write(
    dtype: np.dtype, accumulate: bool, value: ir.Value, tensor: ir.Value, where: list[ir.Value]
) -> ir.Value:
    element = ir.RankedTensorType(tensor.type).element_type
    if accumulate:
        old = build.create("tensor.extract", [element], [tensor, *where]).result
        value = _sum(dtype, old, value)
    return build.create("tensor.insert", [tensor.type], [value, tensor, *where]).result


def _to_update(context: FunctionConverter, op: ir.Operation) -> ir.Value:
    """The tensor that an update starts from.

    It is a copy unless nothing else reads the old one. Bufferization would make that copy too; but the buffer
    of a result is chosen before it looks, for the whole chain of updates, and an older tensor of the chain
    that is still needed must not be in it.
    """
    x = op.operands[0]
    old = context.tensor_of(x)
    if updates_in_place(op) or context.is_lent_to(op.results[0], x):
        return old
    element = ir.RankedTensorType(old.type).element_type

    # As a loop: upstream's canonicalization removes a copy that is a linalg operation.
    def body(tensor: ir.Value, indices: list[ir.Value]) -> ir.Value:
        value = build.create("tensor.extract", [element], [old, *indices]).result
        return build.create("tensor.insert", [tensor.type], [value, tensor, *indices]).result

    sizes = context.sizes_of(x)
    start = context.destinations.start(op.results[0], old.type, sizes)
    return _Loops(sizes).run(start, body)


@lowers("graphc.update_slice", starts_anywhere=True)
def update_slice(context: FunctionConverter, op: ir.Operation) -> None:
    """x with the elements at `offset + i * stride` set to, or increased by, those of y.

    A loop writes element by element at the computed position, so any stride (also a negative one) is right;
    LLVM turns the unit-stride case into block copies.
    """
    y = context.tensor_of(op.operands[1])
    x = _to_update(context, op)
    rank = ir.RankedTensorType(x.type).rank
    positions = [context.index_of(v) for v in list(op.operands)[2:]]
    offsets, sizes, strides = positions[:rank], positions[rank : 2 * rank], positions[2 * rank :]
    dtype = dtype_of(op.results[0].type.element_type)
    element = ir.RankedTensorType(y.type).element_type
    accumulate = _accumulates(op)

    def body(tensor: ir.Value, indices: list[ir.Value]) -> ir.Value:
        value = build.create("tensor.extract", [element], [y, *indices]).result
        where = [
            build.index_op("addi", offset, build.index_op("muli", index, stride))
            for offset, index, stride in zip(offsets, indices, strides, strict=True)
        ]
        return _write(dtype, accumulate, value, tensor, where)

    result = _Loops(sizes).run(x, body)
    context.define(op.results[0], build.cast(result, build.storage_type(op.results[0].type)))


@lowers("graphc.put", starts_anywhere=True)
def put(context: FunctionConverter, op: ir.Operation) -> None:
    """x with rows along one axis set or increased at integer positions; duplicates act in order."""
    y, indices = (context.tensor_of(v) for v in list(op.operands)[1:])
    x = _to_update(context, op)
    axis = axis_of(op)
    dtype = dtype_of(op.results[0].type.element_type)
    element = ir.RankedTensorType(y.type).element_type
    index_rank = ir.RankedTensorType(indices.type).rank
    size = build.dim(x, axis)
    i64 = ir.IntegerType.get_signless(64)
    accumulate = _accumulates(op)

    def body(tensor: ir.Value, position: list[ir.Value]) -> ir.Value:
        inner = position[axis : axis + index_rank]
        raw = build.create("tensor.extract", [i64], [indices, *inner]).result
        index = build.create("arith.index_cast", [build.index_type()], [raw]).result
        negative = build.compare_index(2, index, build.const_index(0))
        index = build.select(negative, build.index_op("addi", index, size), index)
        value = build.create("tensor.extract", [element], [y, *position]).result
        where = [*position[:axis], index, *position[axis + index_rank :]]
        return _write(dtype, accumulate, value, tensor, where)

    result = _Loops(build.dims(y)).run(x, body)
    context.define(op.results[0], build.cast(result, build.storage_type(op.results[0].type)))
