# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sizes are known to be equal when compiling, because one is made from the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphc.ir import build
from graphc.ir.kinds import is_elementwise, static_shape
from graphc.ir.scan_view import is_state, is_trace, name_of, retention, traced
from graphc.ir.traits.interfaces import SIZES, Dimension, broadcast_sizes
from graphc_dialects._mlir import ir

RowSizes = Mapping[Any, Mapping[str, list[Any]]]


def have_same_sizes(value: ir.Value, x: ir.Value, row_sizes: RowSizes) -> bool:
    """Whether two values of one type have the same shape.

    Only what the first is made from is looked at: its checks have passed when it is computed.

    Args:
        value: of the graph stage, in the same block as x.
        x: another value.
        row_sizes: index values for the rows of the outputs of each scan, by its first result and their name.
    """
    return all(
        size is not None or _leads_to((value, axis), (x, axis), row_sizes)
        for axis, size in enumerate(static_shape(x))
    )


def _leads_to(start: Dimension, goal: Dimension, row_sizes: RowSizes) -> bool:
    pending, seen = [start], {start}
    while pending:
        size = pending.pop()
        if size == goal:
            return True
        new = [equal for equal in _equal(size, row_sizes) if equal not in seen]
        seen.update(new)
        pending += new
    return False


def _equal(size: Dimension, row_sizes: RowSizes) -> Iterator[Dimension]:
    """Sizes that a size is made from without a change."""
    value, axis = size
    op = value.owner
    if isinstance(op, ir.Block):
        return
    if axis < 0:
        known = build.constant_value(op.operands[1]) if op.name == "tensor.dim" else None
        if known is not None:
            yield op.operands[0], known
    elif is_trace(op):
        yield from _of_trace(op, axis, row_sizes)
    elif is_elementwise(op.name) and op.name not in SIZES:
        yield from broadcast_sizes(op)[axis]
    else:
        rule = SIZES.get(op.name)
        yield from () if rule is None else rule(op)[axis]


def _of_trace(op: ir.Operation, axis: int, row_sizes: RowSizes) -> Iterator[Dimension]:
    view, declaration = traced(op)
    if axis == 0:
        if retention(declaration)[0] == "steps" and view.stop is None:
            yield view.steps, -1
    elif is_state(declaration):
        yield declaration.operands[0], axis
    else:
        yield row_sizes[op.operands[0]][name_of(op)][axis - 1], -1
