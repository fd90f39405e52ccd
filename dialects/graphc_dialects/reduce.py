# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, and operations that normalise along axes."""

from graphc_dialects._base import (
    Axes,
    GraphcOp,
    Tensor,
    array,
    check_axis,
    check_shape,
    dim_of,
    fail,
    is_signless,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir


def _axes(op: ir.Operation, rank: int) -> list[int] | None:
    """The `axes` attribute: ascending, distinct and in range; None after reporting otherwise."""
    axes = array(op, "axes")
    if axes is None:
        return None
    if axes != sorted(set(axes)) or (axes and not 0 <= axes[0] <= axes[-1] < rank):
        fail(op, f"axes must be ascending, distinct and in range for rank {rank}, but are {axes}")
        return None
    return axes


def _kept(op: ir.Operation, dim: int, removed: list[int]) -> int:
    rank = len(op.operands[0].type.shape)
    return [axis for axis in range(rank) if axis not in removed][dim]


class Reduction(GraphcOp):
    """Base of reductions that combine elements and drop the reduced axes."""

    def verify_invariants(self) -> bool:
        """Checks axes, result shape and element type."""
        types = tensor_types(self)
        if types is None:
            return False
        shape = types[0].shape
        axes = _axes(self, len(shape))
        if axes is None:
            return False
        kept = [size for axis, size in enumerate(shape) if axis not in axes]
        if types[0].element_type != types[1].element_type:
            return fail(
                self,
                f"result must have element type {types[0].element_type}, but has {types[1].element_type}",
            )
        return check_shape(self, types[1].shape, kept)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the axis that result dimension `dim` was."""
        return dim_of(self.operands[0], _kept(self, dim, list(self.attributes["axes"])))


class ReduceSumOp(Reduction, name="reduce_sum", traits=[ext.Pure]):
    """Sum over axes. With the attribute `narrow` it is accumulated in its own element type."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ReduceProdOp(Reduction, name="reduce_prod", traits=[ext.Pure]):
    """Product over axes."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ReduceMaxOp(Reduction, name="reduce_max", traits=[ext.Pure]):
    """Largest element over axes; NaN wins."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ReduceMinOp(Reduction, name="reduce_min", traits=[ext.Pure]):
    """Smallest element over axes; NaN wins."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ReduceAndOp(Reduction, name="reduce_and", traits=[ext.Pure]):
    """Bitwise (for i1, logical) and over axes."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ReduceOrOp(Reduction, name="reduce_or", traits=[ext.Pure]):
    """Bitwise (for i1, logical) or over axes."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class ArgReduction(GraphcOp):
    """Base of argmax and argmin."""

    def verify_invariants(self) -> bool:
        """Checks the axis, the result shape and that the result is i64."""
        types = tensor_types(self)
        if types is None:
            return False
        shape = types[0].shape
        axis = check_axis(self, "axis", len(shape))
        if axis is None:
            return False
        if not is_signless(types[1].element_type, 64):
            return fail(self, f"result must have element type i64, but has {types[1].element_type}")
        return check_shape(self, types[1].shape, shape[:axis] + shape[axis + 1 :])

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the axis that result dimension `dim` was."""
        return dim_of(self.operands[0], _kept(self, dim, [self.attributes["axis"].value]))


class ArgmaxOp(ArgReduction, name="argmax", traits=[ext.Pure]):
    """Index of the first largest element along an axis; the first NaN counts as largest."""

    x: ext.Operand[Tensor]
    axis: ir.IntegerAttr
    res: ext.Result[Tensor]


class ArgminOp(ArgReduction, name="argmin", traits=[ext.Pure]):
    """Index of the first smallest element along an axis; the first NaN counts as smallest."""

    x: ext.Operand[Tensor]
    axis: ir.IntegerAttr
    res: ext.Result[Tensor]


class Normalisation(GraphcOp):
    """Base of softmax and log_softmax."""

    def verify_invariants(self) -> bool:
        """Checks axes, and that result and operand agree."""
        types = tensor_types(self)
        if types is None or _axes(self, len(types[0].shape)) is None:
            return False
        if types[0].element_type != types[1].element_type:
            return fail(
                self,
                f"result must have element type {types[0].element_type}, but has {types[1].element_type}",
            )
        return check_shape(self, types[1].shape, types[0].shape)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the operand."""
        return dim_of(self.operands[0], dim)


class SoftmaxOp(Normalisation, name="softmax", traits=[ext.Pure]):
    """`exp(x) / sum(exp(x))` over axes, in a form that cannot overflow."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]


class LogSoftmaxOp(Normalisation, name="log_softmax", traits=[ext.Pure]):
    """`x - log(sum(exp(x)))` over axes, in a form that cannot overflow."""

    x: ext.Operand[Tensor]
    axes: Axes
    res: ext.Result[Tensor]
