# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering rules of joins and of writes into buffers; see `graphc.lowering.memory.destinations`."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.views import INLINED, axes_order, axis_of
from graphc.ir.walk import definition
from graphc.lowering.memory.destinations import Destination, Size, is_empty
from graphc.lowering.rules import Conversion, lowers
from graphc.lowering.scans.buffers import allocate
from graphc_dialects._mlir import ir
from graphc_dialects.write import buffer_type, reads_buffer


@lowers("graphc.write_buffer")
def write_buffer(context: Conversion, op: ir.Operation) -> None:
    """Memory for a tensor: where it is wanted, else its own."""
    buffer = op.results[0]
    kind = build.storage_type(buffer_type(buffer))
    sizes: list[Size] = [
        known if known >= 0 else context.index_of(size)
        for known, size in zip(kind.shape, op.operands, strict=True)
    ]
    destination = None
    for use in buffer.uses:
        user = use.owner.operation
        if reads_buffer(user):
            result, contiguous = user.results[0], _is_reshaped(buffer)
            destination = context.destinations.claim(result, sizes=sizes, contiguous=contiguous)
            destination = destination or context.destinations.borrow(result, contiguous)
            break
    if destination is None:
        destination = Destination.whole(allocate(kind, sizes), sizes)
    context.destinations.describe(buffer, destination)


def _is_reshaped(buffer: ir.Value) -> bool:
    """True if some part of a buffer is seen with another shape, which takes contiguous memory."""
    for use in buffer.uses:
        op = use.owner.operation
        if op.name == "graphc.write_view" and "order" not in op.attributes:
            return True
        if op.name in ("graphc.write_split", "graphc.write_view"):
            if any(_is_reshaped(part) for part in op.results):
                return True
    return False


@lowers("graphc.write_split")
def write_split(context: Conversion, op: ir.Operation) -> None:
    """The parts begin where the ones before end."""
    whole = context.destinations.of_buffer(op.operands[0])
    axis = axis_of(op)
    position: Size = 0
    for part, value in zip(op.results, list(op.operands)[1:], strict=True):
        size = context.index_of(value)
        context.destinations.describe(part, whole.part(axis, position, size))
        position += size


@lowers("graphc.write_view")
def write_view(context: Conversion, op: ir.Operation) -> None:
    """A permutation of the axes, or another shape."""
    source = context.destinations.of_buffer(op.operands[0])
    if "order" in op.attributes:
        view = source.permuted(axes_order(op))
    else:
        view = source.reshaped([context.index_of(size) for size in list(op.operands)[1:]])
    context.destinations.describe(op.results[0], view)


@lowers("graphc.write")
def write_value(context: Conversion, op: ir.Operation) -> None:
    """Computes a view in its destination; copies what lives elsewhere."""
    value, buffer = op.operands
    empty = is_empty(value) or context.destinations.of_buffer(buffer).is_empty
    if not empty and not context.destinations.is_done(op):
        context.destinations.begin_write(op)
        _put(context, value, op.block)


@lowers("graphc.join")
def join(context: Any, op: ir.Operation) -> None:
    """A join whose operands are not written in place: each is copied, or computed if it is a view."""
    result = op.results[0]
    axis = axis_of(op)
    parts = [context.sizes_of(x)[axis] for x in op.operands]
    total: Size = 0
    for part in parts:
        total += part
    sizes = [*context.sizes_of(op.operands[0])]
    sizes[axis] = total
    kind = build.storage_type(result.type)
    sizes = [known if known >= 0 else size for known, size in zip(kind.shape, sizes, strict=True)]
    whole = context.destinations.take(result) or context.destinations.claim(result, sizes=sizes)
    if whole is None:
        whole = Destination.whole(allocate(kind, sizes), sizes)
    position: Size = 0
    for operand, size in zip(op.operands, parts, strict=True):
        part = whole.part(axis, position, size)
        if not is_empty(operand) and not part.is_empty:
            context.destinations.begin_part(operand, part)
            _put(context, operand, op.block)
        position += size
    _define_join(context, result, whole)


def _put(context: Conversion, value: ir.Value, block: ir.Block) -> None:
    op = definition(value, *INLINED)
    if op is not None and op.block == block and not context.is_materialised(value):
        context.tensor_of(value)
        context.destinations.finish([value])
    else:
        context.destinations.copy(value)


@lowers("graphc.write_join")
def write_join(context: Conversion, op: ir.Operation) -> None:
    """Present contents of the buffer."""
    _define_join(context, op.results[0], context.destinations.of_buffer(op.operands[0]))


def _define_join(context: Conversion, result: ir.Value, whole: Destination) -> None:
    kind = build.storage_type(result.type)
    if is_empty(result) or whole.is_empty:
        sizes = [build.const_index(size) if isinstance(size, int) else size for size in whole.sizes]
        context.define(result, build.empty(kind, sizes))
    else:
        context.define(result, context.destinations.contents(result, whole))
