# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes consumers read the results of a scan directly instead of through views."""

from __future__ import annotations

from typing import Any

from graphc.ir import build
from graphc.ir.affine import key_of
from graphc.ir.constants import CONSTANTS, read_constant
from graphc.ir.rewrite import tensor_type
from graphc.ir.value import as_index
from graphc.ir.views import (
    GATHERS,
    MOVES_AXES,
    TAKES_PART,
    TAKES_ROW,
    axes_order,
    axis_of,
    bounds_of,
    dimshuffle,
    order_of,
    part_of,
)
from graphc.passes.loops._consumers import Bounds
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize

# Predicates of arith.cmpi.
_BELOW, _NOT_ABOVE = 2, 3


def flatten(trace: ir.Operation) -> int:
    """Turns slices of views of a trace into slices of the trace, and asks no view for its size.

    A slice of a slice, of a cast or of moved axes becomes one slice, and so does a `take` of one row at a
    constant position. Views that nobody uses any more go.

    Returns:
        How many operations changed.
    """
    changed = 0
    pending = [trace.results[0]]
    views: list[ir.Operation] = []
    while pending:
        view = pending.pop()
        for op in [use.owner.operation for use in view.uses if use.operand_number == 0]:
            if op.name == "tensor.dim":
                changed += _resolve_size(op)
                continue
            if op.name in GATHERS:
                op = _slice_for_take(op) or op
            while op.name in TAKES_PART or op.name in TAKES_ROW:
                closer = _closer(op)
                if closer is None:
                    break
                op, changed = closer, changed + 1
            if op.name in TAKES_PART or op.name in MOVES_AXES or _is_same_rank_cast(op):
                views.append(op)
                pending.append(op.results[0])
    for op in reversed(views):
        if next(op.results[0].uses, None) is None:
            op.erase()
    return changed


def _is_same_rank_cast(op: ir.Operation) -> bool:
    if op.name != "tensor.cast":
        return False
    old, new = op.operands[0].type, op.results[0].type
    return isinstance(old, ir.RankedTensorType) and isinstance(new, ir.RankedTensorType)


def _slice_for_take(take: ir.Operation) -> Any:
    """The slice that takes one row at a constant position, with the check of its bounds; or None."""
    x, indices = take.operands
    rank = len(indices.type.shape)
    owner = indices.owner
    if axis_of(take) or isinstance(owner, ir.Block) or owner.operation.name not in CONSTANTS:
        return None
    position = read_constant(owner.operation)
    if position is None or position.size != 1:
        return None
    at = int(position.flat[0])
    with ir.InsertionPoint(take), take.location:
        try:
            sizes = [_size(x, axis) for axis in range(len(x.type.shape))]
        except UnknownSize:
            return None
        start = sizes[0] + at if at < 0 else at
        _check_bounds(at, start, sizes[0])
        type_ = take.results[0].type
        row = list(type_.shape)[rank:]
        bounds: Bounds = [(start, 1, 1), *((0, size, 1) for size in sizes[1:])]
        new = _make_slice(x, bounds, tensor_type([1, *row], type_.element_type))
        order = [-1] * (rank - 1) + [0] * min(rank, 1) + list(range(1, len(row) + 1))
        value = dimshuffle(new.results[0], order, type_)
    take.results[0].replace_all_uses_with(value)
    take.erase()
    return new


def _check_bounds(given: int, start: ir.Value | int, size: ir.Value) -> None:
    low, high = (as_index(0), as_index(start)) if given < 0 else (as_index(start), size)
    inside = build.compare_index(_NOT_ABOVE if given < 0 else _BELOW, low, high)
    message = "index {given} is out of bounds for axis 0 of size {expected}"
    build.check(inside, as_index(given), size, message, "IndexError")


def _resolve_size(op: ir.Operation) -> int:
    """Replaces the size of a view of a trace by what it is computed from."""
    axis = key_of(op.operands[1])
    if not isinstance(axis, int):
        return 0
    try:
        with ir.InsertionPoint(op), op.location:
            size = _size(op.operands[0], axis)
    except UnknownSize:
        return 0
    op.results[0].replace_all_uses_with(size)
    op.erase()
    return 1


def _size(value: ir.Value, axis: int) -> ir.Value:
    static = value.type.shape[axis]
    op = value.owner.operation
    if static >= 0:
        return as_index(static)
    if op.name == "tensor.cast":
        return _size(op.operands[0], axis)
    order = order_of(op)
    if order is not None:
        return _size(op.operands[0], order[axis])
    return op.opview.reify(axis, value.result_number)


def _closer(op: ir.Operation) -> ir.Operation | None:
    """The same slice (or row) taken from what its operand is a view of; None if there is nothing to do."""
    source = op.operands[0].owner.operation
    if _is_same_rank_cast(source):
        op.operands[0] = source.operands[0]
        return op
    if op.name not in TAKES_PART or not (source.name in TAKES_PART or source.name in MOVES_AXES):
        return None
    rule = _slice_of_slice if source.name in TAKES_PART else _slice_of_moved_axes
    with ir.InsertionPoint(op), op.location:
        new = rule(op, source)
    if new is None:
        return None
    taken, value = new
    op.results[0].replace_all_uses_with(value)
    op.erase()
    return taken


def _slice_of_slice(op: ir.Operation, source: ir.Operation) -> tuple[ir.Operation, ir.Value]:
    bounds = [
        (o + s * offset, size, s * stride)
        for (o, _, s), (offset, size, stride) in zip(bounds_of(source), bounds_of(op), strict=True)
    ]
    new = _make_slice(source.operands[0], bounds, op.results[0].type)
    return new, new.results[0]


def _slice_of_moved_axes(op: ir.Operation, source: Any) -> tuple[Any, Any] | None:
    """Slices before axes are moved; axes that are inserted must stay whole."""
    x, order, type_ = source.operands[0], axes_order(source), op.results[0].type
    bounds: Bounds = [(0, 1, 1)] * len(x.type.shape)
    shape = [1] * len(x.type.shape)
    for position, (axis, given) in enumerate(zip(order, bounds_of(op), strict=True)):
        if axis >= 0:
            bounds[axis], shape[axis] = given, type_.shape[position]
        elif key_of(given[1]) != 1:
            return None
    new = _make_slice(x, bounds, tensor_type(shape, type_.element_type))
    return new, dimshuffle(new.results[0], order, type_)


def _make_slice(x: ir.Value, bounds: Bounds, type_: ir.Type) -> ir.Operation:
    """A `graphc.slice` at the current insertion point; bounds are index values or ints."""
    values = [(as_index(o), as_index(size), as_index(s)) for o, size, s in bounds]
    return ir.OpResult(part_of(x, values, type_)).owner
