# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of what is in memory, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir import build
from graphc_dialects._mlir import ir

if TYPE_CHECKING:
    from graphc.lowering.converter import FunctionConverter


def slice_in_place(context: FunctionConverter, op: ir.Operation) -> ir.Value | None:
    """The tensor of a `graphc.slice` with steps of 1 as a part of its source.

    Args:
        context: the function conversion.
        op: the slice.

    Returns:
        None if elements are skipped or reversed, or if the source is not in memory anyway.
    """
    x, *bounds = op.operands
    rank = ir.RankedTensorType(x.type).rank
    if not rank or not context.has_tensor(x) or context.scalar_of(x) is not None:
        return None
    if 0 in list(x.type.shape) or 0 in list(op.results[0].type.shape):
        return None  # upstream refuses parts of what has no elements
    offsets, sizes, strides = (
        [context.index_of(v) for v in bounds[start : start + rank]] for start in (0, rank, 2 * rank)
    )
    if any(build.constant_value(stride) != 1 for stride in strides):
        return None
    source = context.tensor_of(x)
    result = build.storage_type(op.results[0].type)
    known = list(result.shape)
    dynamic = [size for size, static in zip(sizes, known, strict=True) if static < 0]
    starts = [build.constant_value(offset) for offset in offsets]
    if not all(
        whole < 0 or start == 0 or (start is not None and size >= 0 and start + size <= whole)
        for whole, start, size in zip(ir.RankedTensorType(x.type).shape, starts, known, strict=True)
    ):
        return None  # upstream refuses parts that begin at the end of an axis, although they may be empty
    moving = [offset for offset, start in zip(offsets, starts, strict=True) if start is None]
    return build.create(
        "tensor.extract_slice",
        [ir.RankedTensorType.get(known, result.element_type)],
        [source, *moving, *dynamic],
        static_offsets=build.index_array([build.DYNAMIC if start is None else start for start in starts]),
        static_sizes=build.index_array([build.DYNAMIC if size < 0 else size for size in known]),
        static_strides=build.index_array([1] * rank),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(moving), len(dynamic), 0]),
    ).result
