# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of `graphc.update_slice` and `graphc.put`: writes into part of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.ir import build
from graphc.ir.build import dtype_of
from graphc.ir.ownership import updates_in_place
from graphc.ir.views import accumulates, axis_of
from graphc.lowering.carried import loop
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


def _nest(
    sizes: list[ir.Value],
    carried: list[ir.Value],
    body: Callable[[list[ir.Value], Indices], list[ir.Value]],
    indices: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """`body(carried, indices)` for every index tuple, in row-major order; what it gives is carried on."""
    if len(indices) == len(sizes):
        return body(carried, [*indices])
    made, block = loop(sizes[len(indices)], carried)
    with ir.InsertionPoint(block):
        position, *inner = block.arguments
        build.create("scf.yield", [], _nest(sizes, inner, body, [*indices, position]))
    return list(made.results)


def _to_update(context: Conversion, op: ir.Operation) -> ir.Value:
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
    def body(carried: list[ir.Value], indices: Indices) -> list[ir.Value]:
        value = build.create("tensor.extract", [element], [old, *indices]).result
        return [build.create("tensor.insert", [old.type], [value, *carried, *indices]).result]

    sizes = context.sizes_of(x)
    start = context.destinations.start(op.results[0], old.type, sizes)
    return _nest(sizes, [start], body)[0]


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

    def changed(name: str, array: ir.Value, indices: Indices) -> tuple[ir.Value, Indices]:
        value, where = element(indices)
        if accumulates(op):
            value = _sum(dtype, build.create(name, [value.type], [array, *where]).result, value)
        return value, where

    def insert(carried: list[ir.Value], indices: Indices) -> list[ir.Value]:
        value, where = changed("tensor.extract", carried[0], indices)
        return [build.create("tensor.insert", [carried[0].type], [value, *carried, *where]).result]

    def store(memory: ir.Value, indices: Indices) -> list[ir.Value]:
        value, where = changed("memref.load", memory, indices)
        build.create("memref.store", [], [value, memory, *where])
        return []

    memory = context.memory_of_update(op)
    if memory is not None:
        _nest(sizes, [], lambda _, indices: store(memory, indices))
        context.finish_update(op)
    else:
        (result,) = _nest(sizes, [_to_update(context, op)], insert)
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
    kind = ir.RankedTensorType(y.type).element_type

    def element(indices: Indices) -> tuple[ir.Value, Indices]:
        value = build.create("tensor.extract", [kind], [y, *indices]).result
        where = [
            offset + index * stride for offset, index, stride in zip(offsets, indices, strides, strict=True)
        ]
        return value, where

    _update(context, op, sizes, element)


@lowers("graphc.put", starts_anywhere=True)
def put(context: Conversion, op: ir.Operation) -> None:
    """x with rows along one axis set or increased at integer positions; duplicates act in order."""
    x = op.operands[0]
    y, positions = (context.tensor_of(v) for v in list(op.operands)[1:])
    axis = axis_of(op)
    kind = ir.RankedTensorType(y.type).element_type
    index_rank = ir.RankedTensorType(positions.type).rank
    size = context.sizes_of(x)[axis]
    i64 = ir.IntegerType.get_signless(64)

    def element(indices: Indices) -> tuple[ir.Value, Indices]:
        inner = indices[axis : axis + index_rank]
        raw = build.create("tensor.extract", [i64], [positions, *inner]).result
        index = build.create("arith.index_cast", [build.index_type()], [raw]).result
        negative = build.compare_index(2, index, build.const_index(0))
        index = build.select(negative, index + size, index)
        value = build.create("tensor.extract", [kind], [y, *indices]).result
        return value, [*indices[:axis], index, *indices[axis + index_rank :]]

    _update(context, op, build.dims(y), element)
