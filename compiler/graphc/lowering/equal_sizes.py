# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sizes are known to be equal when compiling, because one is made from the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphc.ir import build
from graphc.ir.kinds import REDUCTIONS, is_elementwise, reduced_axes, static_shape
from graphc.ir.scan_view import ScanView, name_of, retention
from graphc.lowering.recurrences import RECURRENCES
from graphc_dialects._mlir import ir
from graphc_dialects.write import root_of

# A dimension of a tensor; or an index value, whose axis is -1.
Size = tuple[Any, int]
RowSizes = Mapping[Any, Mapping[str, list[Any]]]
_UPDATES = ("graphc.update_slice", "graphc.put")
_SAME_SHAPE = (*_UPDATES, "graphc.specify_shape", "tensor.cast")


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


def _leads_to(start: Size, goal: Size, row_sizes: RowSizes) -> bool:
    pending, seen = [start], {start}
    while pending:
        size = pending.pop()
        if size == goal:
            return True
        new = [equal for equal in _equal(size, row_sizes) if equal not in seen]
        seen.update(new)
        pending += new
    return False


def _equal(size: Size, row_sizes: RowSizes) -> Iterator[Size]:
    """Sizes that a size is made from without a change."""
    value, axis = size
    op = value.owner
    if isinstance(op, ir.Block):
        return
    operands = list(op.operands)
    if axis < 0:
        known = build.constant_value(operands[1]) if op.name == "tensor.dim" else None
        if known is not None:
            yield operands[0], known
    elif op.name == "graphc.take":
        yield _of_take(op, axis)
    elif is_elementwise(op.name):
        yield from ((x, axis) for x in operands if static_shape(x)[axis] != 1)
    elif op.name in _SAME_SHAPE:
        yield operands[0], axis
    elif op.name in REDUCTIONS:
        kept = [k for k in range(len(static_shape(operands[0]))) if k not in reduced_axes(op)]
        yield operands[0], kept[axis]
    elif op.name == "graphc.join":
        if axis != op.attributes["axis"].value:
            yield from ((x, axis) for x in operands)
    else:
        yield from _of_structure(op, axis, row_sizes)


def _of_take(op: ir.Operation, axis: int) -> Size:
    source, indices = op.operands
    first, rank = op.attributes["axis"].value, len(static_shape(indices))
    if axis < first:
        return source, axis
    return (indices, axis - first) if axis < first + rank else (source, axis - rank + 1)


def _of_structure(op: ir.Operation, axis: int, row_sizes: RowSizes) -> Iterator[Size]:
    operands = list(op.operands)
    rank = len(static_shape(op.results[0]))
    if op.name == "graphc.dimshuffle":
        source = list(op.attributes["order"])[axis]
        if source >= 0:
            yield operands[0], source
    elif op.name in ("graphc.reshape", "graphc.broadcast_to"):
        yield operands[1 + axis], -1
    elif op.name == "graphc.slice":
        yield operands[1 + rank + axis], -1
    elif op.name == "graphc.write_join":
        yield root_of(operands[0]).operands[axis], -1
    elif op.name == "graphc.matmul":
        yield from _of_matmul(op, axis, rank)
    elif op.name in RECURRENCES:
        *_, initial, steps = operands
        if axis:
            yield initial, axis
        elif not ir.BoolAttr(op.attributes["keep_initial"]).value:
            yield steps, -1
    elif op.name == "graphc.scan_trace":
        yield from _of_trace(op, axis, row_sizes)


def _of_matmul(op: ir.Operation, axis: int, rank: int) -> Iterator[Size]:
    a, b = op.operands
    if axis < rank - 2:
        yield a, axis
        yield b, axis
        return
    side = "a" if axis == rank - 2 else "b"
    transposed = ir.BoolAttr(op.attributes[f"transpose_{side}"]).value
    other = 2 * rank - 3 - axis
    yield (a if side == "a" else b), other if transposed else axis


def _of_trace(op: ir.Operation, axis: int, row_sizes: RowSizes) -> Iterator[Size]:
    view, name = ScanView(op.operands[0].owner), name_of(op)
    declaration = view.declarations()[name]
    if axis == 0:
        if retention(declaration)[0] == "steps" and view.stop is None:
            yield view.steps, -1
    elif declaration.name == "graphc.scan_carry":
        yield declaration.operands[0], axis
    else:
        yield row_sizes[op.operands[0]][name][axis - 1], -1
