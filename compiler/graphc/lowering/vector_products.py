# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of a vector and a matrix, which the graph writes as products of matrices with a dimension of 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir import build
from graphc.ir.build import fill
from graphc.ir.kinds import flags_of
from graphc.ir.types import dtype_of
from graphc.ir.views import order_of
from graphc.lowering.contractions import contraction
from graphc.lowering.scan_buffers import read, writable, write
from graphc.lowering.unit_axes import drop_axes, insert_axes
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


def is_vector_product(op: ir.Operation) -> bool:
    """Whether a `graphc.matmul` is lowered as the product with a vector."""
    shape = list(op.results[0].type.shape)
    return len(shape) == 2 and (shape[0] == 1) != (shape[1] == 1)


def vector_product(context: FunctionConverter, op: ir.Operation, zero: ir.Value) -> bool:
    """Lowers a `graphc.matmul` whose result has one row, or one column, to a product with a vector.

    The result is a vector then, which can be computed in its destination; a view of a matrix could not. A
    dimshuffle that only drops the axis is this vector.

    Args:
        context: the function conversion.
        op: the product.
        zero: what the sums start from.

    Returns:
        Whether it has been lowered: not if it is batched, or if the result has one element.
    """
    result = op.results[0]
    shape = list(result.type.shape)
    if not is_vector_product(op):
        return False
    ta, tb = flags = list(flags_of(op))
    operands = [context.tensor_of(x) for x in op.operands]
    # Of the vector, the axis that is summed over; of the matrix, the one that the result has.
    if shape[0] == 1:
        vector, matrix, summed, free = 0, 1, int(not ta), int(not tb)
    else:
        vector, matrix, summed, free = 1, 0, int(tb), int(ta)
    operands[vector] = drop_axes(operands[vector], [summed])
    axes = [[1], [1]]
    axes[matrix] = [1, 0] if free else [0, 1]
    kept = 1 if shape[0] == 1 else 0
    target = build.storage_type(result.type)
    kind = ir.RankedTensorType.get([shape[kept]], target.element_type)
    place = context.destinations.take(result)
    if place is None and context.is_wanted_in_argument(result):
        place = context.destinations.claim(result)
    if place is None:
        start = build.empty(kind, [build.dim(operands[matrix], free)])
    else:
        memref = place.permuted([kept]).memref([shape[kept] if shape[kept] >= 0 else None])
        start = build.cast(writable(memref), kind)
    dtype = dtype_of(result.type.element_type)
    product = contraction(operands[0], operands[1], fill(zero, start), (axes[0], axes[1]), dtype, flags)
    if place is not None and context.destinations.is_final(result):
        write(product, memref)
        product = read(memref, kind)
    for use in result.uses:
        reader = use.owner.operation
        if order_of(reader) == [kept]:
            view = reader.results[0]
            context.define(view, build.cast(product, build.storage_type(view.type)))
    context.define(result, build.cast(insert_axes(product, [axis == kept for axis in (0, 1)]), target))
    return True
