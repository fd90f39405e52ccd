# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Views: operations whose results hold elements of an operand. Passes ask here, and know no names.

The markers are filled by the files of `graphc.ir.traits`. What moves axes has an attribute `order`: for each
axis of the result the operand's, -1 for one of size 1 that is inserted; an axis that is not named has size 1
and is dropped. What takes a part has a tensor and then offsets, sizes and strides, an index value for each
axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphc.ir.traits import Marker
from graphc_dialects._base import const_index, dim_of
from graphc_dialects._mlir import ir

MOVES_AXES = Marker()
TAKES_PART = Marker()
# All elements of the result are elements of the first operand, and all of those are in it.
SAME_ELEMENTS = Marker()
# Besides, each is in it once and in memory they are in the same place, as long as no axes are permuted.
RENAMES = Marker()
# Elements of the first operand, wherever they lie in it; other operands say which.
SELECTS = Marker()
# Elements of the first operand along the attribute `axis`, at positions that the second one holds.
GATHERS = Marker()
# The result is the first operand, and its type may say more of sizes.
SAME_ARRAY = Marker()
# The first operand with the sizes that the other operands are.
RESIZES = Marker()
# The first operand repeated: a size of 1, or a missing leading axis, becomes another.
REPEATS = Marker()
# The elements of the first operand in their order, in another shape.
RESHAPES = Marker()
# The operands one after the other along the attribute `axis`.
JOINS = Marker()
# The first operand with some elements replaced by those of the second, or the attribute `accumulate` added.
UPDATES = Marker()
# They update a part, like one that `TAKES_PART`: two tensors, and then offsets, sizes and strides.
UPDATES_PART = Marker()
# The row of the first operand, along its first axis, at an index value, the second operand.
TAKES_ROW = Marker()
# A start, and a step as often as the position says, for a number of elements: 0-d tensors and an index value.
COUNTS = Marker()
# They compute nothing: each reader takes the elements from where they are.
INLINED = Marker()


class _Either(Marker):
    """The operations of any of some markers."""

    def __init__(self, *markers: Marker) -> None:
        super().__init__()
        self._markers = markers

    def _load(self) -> None:
        self._names.update(name for marker in self._markers for name in marker)
        super()._load()


# Operations of one tensor whose elements they take, in whatever order.
SELECTED = _Either(SELECTS, SAME_ELEMENTS)

Create = Callable[..., ir.Value]


class Bound(NamedTuple):
    """A part along one axis, as index values."""

    offset: ir.Value
    size: ir.Value
    stride: ir.Value


def create_here(
    name: str, operands: Sequence[ir.Value], type_: ir.Type, **attributes: ir.Attribute
) -> ir.Value:
    """The result of a new operation at the current insertion point."""
    return ir.Operation.create(name, [type_], list(operands), attributes).result


# -- moved axes ----------------------------------------------------------------------------------------------


def order_of(op: ir.Operation | None) -> list[int] | None:
    """The order of an operation that moves axes, else None."""
    return axes_order(op) if op is not None and op.name in MOVES_AXES else None


def axes_order(op: ir.Operation) -> list[int]:
    """The attribute `order`."""
    return list(op.attributes["order"])


def axis_of(op: ir.Operation) -> int:
    """The attribute `axis`."""
    return int(op.attributes["axis"].value)


def accumulates(op: ir.Operation) -> bool:
    """True if an update adds to the elements, instead of replacing them."""
    return bool(op.attributes["accumulate"].value)


def is_in_range(op: ir.Operation) -> bool:
    """True if indices are known to be in range, and not negative, when a graph becomes a module."""
    return "in_range" in op.attributes


def moved_type(type_: ir.Type, order: Sequence[int]) -> ir.RankedTensorType:
    """The type of a tensor with moved axes."""
    shape, dynamic = type_.shape, ir.ShapedType.get_dynamic_size()
    sizes = [1 if axis < 0 else shape[axis] for axis in order]
    return ir.RankedTensorType.get([n if n >= 0 else dynamic for n in sizes], type_.element_type)


def dimshuffle(
    x: ir.Value, order: Sequence[int], type_: ir.Type | None = None, create: Create = create_here
) -> ir.Value:
    """A tensor with moved axes.

    Args:
        x: the tensor. order: see above.
        type_: of the result, if it is not what follows from that of x. Sizes that either of them knows are
            known of the moved axes; a cast forgets those that `type_` does not have.
        create: makes operations, such as `Rewriter.create`; by default at the current insertion point.
    """
    attribute = ir.DenseI64ArrayAttr.get(list(order))
    moved = moved_type(x.type, order)
    if type_ is None or type_ == moved:
        return create("graphc.dimshuffle", [x], moved, order=attribute)
    known = [have if have >= 0 else told for have, told in zip(moved.shape, type_.shape, strict=True)]
    value = create(
        "graphc.dimshuffle", [x], ir.RankedTensorType.get(known, type_.element_type), order=attribute
    )
    return value if value.type == type_ else create("tensor.cast", [value], type_)


def stacked_order(rank: int) -> list[int]:
    """The order that makes an array a stack of one row."""
    return [-1, *range(rank)]


def stack_of_one(row: ir.Value) -> ir.Value:
    """A stack of one row, at the current insertion point."""
    return dimshuffle(row, stacked_order(len(row.type.shape)))


def transposed_order(rank: int) -> list[int]:
    """The order that swaps the last two axes."""
    return [*range(rank - 2), rank - 1, rank - 2]


def restored_order(rank: int, removed: Sequence[int]) -> list[int]:
    """The order that inserts axes where a reduction of `rank` axes removed them."""
    kept = [axis for axis in range(rank) if axis not in removed]
    return [-1 if axis in removed else kept.index(axis) for axis in range(rank)]


def inverse_order(order: Sequence[int], rank: int) -> list[int]:
    """The order that leads back to an operand of `rank` axes."""
    places = {axis: position for position, axis in enumerate(order)}
    return [places.get(axis, -1) for axis in range(rank)]


def keeps_order(op: ir.Operation) -> bool:
    """True if an operation permutes no axes."""
    axes = [axis for axis in order_of(op) or () if axis >= 0]
    return axes == sorted(axes)


def counted(
    start: ir.Value, step: ir.Value, length: ir.Value, type_: ir.Type, create: Create = create_here
) -> ir.Value:
    """`start + step * i` for i below a length; see `dimshuffle` for `create`."""
    return create("graphc.iota", [start, step, length], type_)


# -- sizes that are given ------------------------------------------------------------------------------------


def repeated(
    x: ir.Value, sizes: Sequence[ir.Value], type_: ir.Type, create: Create = create_here
) -> ir.Value:
    """A tensor broadcast to sizes; see `dimshuffle` for `create`."""
    return create("graphc.broadcast_to", [x, *sizes], type_)


def reshaped(
    x: ir.Value, sizes: Sequence[ir.Value], type_: ir.Type, create: Create = create_here
) -> ir.Value:
    """The elements of a tensor in another shape; see `dimshuffle` for `create`."""
    return create("graphc.reshape", [x, *sizes], type_)


def with_sizes(
    x: ir.Value, sizes: Sequence[ir.Value], type_: ir.Type, create: Create = create_here
) -> ir.Value:
    """A tensor that is known to have these sizes from here on; see `dimshuffle` for `create`."""
    return create("graphc.specify_shape", [x, *sizes], type_)


# -- parts ---------------------------------------------------------------------------------------------------


def joined(operands: Sequence[ir.Value], axis: int, type_: ir.Type, create: Create = create_here) -> ir.Value:
    """Tensors of one type, one after the other along an axis; see `dimshuffle` for `create`."""
    number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis)
    return create("graphc.join", list(operands), type_, axis=number)


def bounds_of(op: ir.Operation, tensors: int = 1) -> list[Bound]:
    """Parts that an operation takes along each axis; it must be one whose operands end in what they take.

    Args:
        op: takes a part, or replaces one. tensors: how many operands come before.
    """
    values = list(op.operands)[tensors:]
    rank = len(values) // 3
    return [Bound(*values[axis::rank]) for axis in range(rank)]


def part_of(
    x: ir.Value,
    bounds: Sequence[tuple[ir.Value, ir.Value, ir.Value]],
    type_: ir.Type,
    create: Create = create_here,
) -> ir.Value:
    """The part of a tensor with these offsets, sizes and strides; see `dimshuffle` for `create`."""
    return create(
        "graphc.slice", [x, *(value for kind in zip(*bounds, strict=True) for value in kind)], type_
    )


def row_at(
    x: ir.Value, position: ir.Value, type_: ir.Type | None = None, create: Create = create_here
) -> ir.Value:
    """The row of a tensor at an index value. Its type follows from that of x, or says more or less
    of sizes; see `dimshuffle` for `create`.
    """
    natural = ir.RankedTensorType.get(list(x.type.shape)[1:], x.type.element_type)
    return create("graphc.scan_seq", [x, position], type_ or natural)


def take_rows(
    x: ir.Value, static: int, rows: tuple[ir.Value, ir.Value, ir.Value], create: Create = create_here
) -> ir.Value:
    """Some rows of a tensor, of which the other axes stay whole.

    Args:
        x: the tensor. static: how many rows are taken, negative if that is not static.
        rows: offset, number and stride. create: see `dimshuffle`.
    """
    shape, zero, one = list(x.type.shape), const_index(0), const_index(1)
    others = [(zero, dim_of(x, axis), one) for axis in range(1, len(shape))]
    sizes = [static if static >= 0 else ir.ShapedType.get_dynamic_size(), *shape[1:]]
    return part_of(x, [rows, *others], ir.RankedTensorType.get(sizes, x.type.element_type), create)
