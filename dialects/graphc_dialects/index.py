# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indexing: slices, and integer arrays along one axis."""

from collections.abc import Sequence

from graphc_dialects._base import (
    Flag,
    GraphcOp,
    Tensor,
    check_axis,
    check_bool,
    check_shape,
    dim_of,
    fail,
    is_signless,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements


def _check_bounds(op: ir.Operation, tensors: int, rank: int) -> bool:
    given = len(op.operands) - tensors
    if given == 3 * rank:
        return True
    return fail(op, f"needs {rank} offsets, sizes and strides ({3 * rank} index operands), but has {given}")


def _is_i64(op: ir.Operation, type_: ir.Type) -> bool:
    if is_signless(type_.element_type, 64):
        return True
    return fail(op, f"indices must have element type i64, but have {type_.element_type}")


class SliceOp(GraphcOp, name="slice", traits=[ext.Pure]):
    """Basic slicing by one offset, size and (possibly negative) stride per axis, already normalised."""

    x: ext.Operand[Tensor]
    bounds: Sequence[ext.Operand[ir.IndexType]]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks ranks, element types and the number of bounds."""
        types = tensor_types(self, 1)
        if types is None or not same_elements(self, types):
            return False
        rank = len(types[0].shape)
        if len(types[1].shape) != rank:
            return fail(self, f"result must have rank {rank}, but has rank {len(types[1].shape)}")
        return _check_bounds(self, 1, rank)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size operand."""
        return self.operands[1 + len(self.results[0].type.shape) + dim]


class UpdateSliceOp(GraphcOp, name="update_slice", traits=[ext.Pure]):
    """`x` with a slice replaced by (or, with `accumulate`, increased by) `y`, which has the slice's shape."""

    x: ext.Operand[Tensor]
    y: ext.Operand[Tensor]
    bounds: Sequence[ext.Operand[ir.IndexType]]
    accumulate: Flag
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks ranks, element types and the number of bounds."""
        types = tensor_types(self, 2)
        if types is None or not same_elements(self, types) or not check_bool(self, "accumulate"):
            return False
        rank = len(types[0].shape)
        if len(types[1].shape) != rank:
            return fail(self, f"y must have rank {rank}, but has rank {len(types[1].shape)}")
        return _check_bounds(self, 2, rank) and check_shape(self, types[2].shape, types[0].shape)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of x."""
        return dim_of(self.operands[0], dim)


class TakeOp(GraphcOp, name="take", traits=[ext.Pure]):
    """Elements of `x` at integer positions along an axis; negative positions count from the end.

    With `in_range` no position is negative or past the end. Where the k-th position lies in the k-th of the
    rows of one length that all elements are, `columns` is this length.
    """

    x: ext.Operand[Tensor]
    indices: ext.Operand[Tensor]
    axis: ir.IntegerAttr
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the axis, element types and the result shape."""
        types = tensor_types(self)
        if types is None or not _is_i64(self, types[1]) or not same_elements(self, [types[0], types[2]]):
            return False
        shape = types[0].shape
        axis = check_axis(self, "axis", len(shape))
        if axis is None:
            return False
        return check_shape(self, types[2].shape, shape[:axis] + types[1].shape + shape[axis + 1 :])

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the indices inside the replaced axis, else that of x."""
        x, indices = self.operands
        axis, rank = self.attributes["axis"].value, len(indices.type.shape)
        if dim < axis:
            return dim_of(x, dim)
        return dim_of(indices, dim - axis) if dim < axis + rank else dim_of(x, dim - rank + 1)


class PutOp(GraphcOp, name="put", traits=[ext.Pure]):
    """`x` with the elements that `take` reads replaced or increased by `y`; duplicates act in order.

    `in_range` and `columns` are as for `take`.
    """

    x: ext.Operand[Tensor]
    y: ext.Operand[Tensor]
    indices: ext.Operand[Tensor]
    axis: ir.IntegerAttr
    accumulate: Flag
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the axis, element types, the rank of y and the result shape."""
        types = tensor_types(self)
        if types is None or not _is_i64(self, types[2]) or not check_bool(self, "accumulate"):
            return False
        if not same_elements(self, [types[0], types[1], types[3]]):
            return False
        shape = types[0].shape
        axis = check_axis(self, "axis", len(shape))
        if axis is None:
            return False
        selected = len(shape) - 1 + len(types[2].shape)
        if len(types[1].shape) != selected:
            return fail(self, f"y must have rank {selected}, but has rank {len(types[1].shape)}")
        return check_shape(self, types[3].shape, shape)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of x."""
        return dim_of(self.operands[0], dim)
