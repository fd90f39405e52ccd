# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that create arrays or change their shape, and literals."""

from collections.abc import Sequence
from typing import Any

from graphc_dialects._base import (
    Axes,
    GraphcOp,
    Tensor,
    array,
    attribute_of,
    check_shape,
    dim_of,
    fail,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir


def same_elements(op: ir.Operation, types: list[ir.Type]) -> bool:
    """True if all types have one element type; reports it otherwise."""
    if all(type_.element_type == types[0].element_type for type_ in types):
        return True
    return fail(
        op, f"element types must agree, but are {', '.join(str(type_.element_type) for type_ in types)}"
    )


class ConstantOp(GraphcOp, name="constant", traits=[ext.Pure]):
    """A literal of an unsigned element type (the others are `arith.constant`)."""

    value: Any
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks that the literal has the result's type."""
        if tensor_types(self) is None:
            return False
        value = attribute_of(self, "value")
        if not isinstance(value, ir.DenseElementsAttr):
            return fail(self, "needs a dense elements attribute 'value'")
        if value.type != self.results[0].type:
            return fail(self, f"value must have type {self.results[0].type}, but has {value.type}")
        return True


class DimshuffleOp(GraphcOp, name="dimshuffle", traits=[ext.Pure]):
    """Permutes axes, inserts axes of length 1 (`-1` in `order`) and drops axes of length 1."""

    x: ext.Operand[Tensor]
    order: Axes
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the order, that only ones are dropped or inserted, and the result type."""
        types = tensor_types(self)
        order = array(self, "order")
        if types is None or order is None or not same_elements(self, types):
            return False
        shape = types[0].shape
        used = [axis for axis in order if axis != -1]
        if len(set(used)) != len(used) or any(not 0 <= axis < len(shape) for axis in used):
            return fail(
                self,
                f"order {order} must name each axis of a rank {len(shape)} operand at most once, or be -1",
            )
        for axis, size in enumerate(shape):
            if axis not in used and size != 1:
                return fail(self, f"dropped axis {axis} must have static size 1")
        result = types[1].shape
        if not check_shape(self, result, [1 if axis == -1 else shape[axis] for axis in order]):
            return False
        for axis, (source, size) in enumerate(zip(order, result, strict=True)):
            if source == -1 and size != 1:
                return fail(self, f"inserted axis {axis} must have static size 1")
        return True

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the axis that `order` puts there; that of an inserted one is static."""
        return dim_of(self.operands[0], list(self.attributes["order"])[dim])


class Sized(GraphcOp):
    """Base of operations whose result shape is given by index operands after `x`."""

    def verify_sizes(self) -> list[ir.Type] | None:
        """Types of x and the result, or None after reporting a wrong number of sizes or element type."""
        types = tensor_types(self, 1)
        if types is None or not same_elements(self, types):
            return None
        given, rank = len(self.operands) - 1, len(types[1].shape)
        if given != rank:
            fail(self, f"needs one size for each of {rank} result dimensions, but has {given}")
            return None
        return types

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size operand."""
        return self.operands[1 + dim]


class ReshapeOp(Sized, name="reshape", traits=[ext.Pure]):
    """Row-major reshape; that the element counts agree is checked at run time."""

    x: ext.Operand[Tensor]
    sizes: Sequence[ext.Operand[ir.IndexType]]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the sizes, and the element counts where they are static."""
        types = self.verify_sizes()
        if types is None:
            return False
        if all(type_.has_static_shape for type_ in types):
            counts = [_count(type_.shape) for type_ in types]
            if counts[0] != counts[1]:
                return fail(self, f"cannot reshape {counts[0]} elements to {counts[1]}")
        return True


def _count(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


class BroadcastToOp(Sized, name="broadcast_to", traits=[ext.Pure]):
    """Broadcasts to a shape of equal or higher rank; static ones and missing leading axes are repeated."""

    x: ext.Operand[Tensor]
    sizes: Sequence[ext.Operand[ir.IndexType]]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks ranks and static sizes."""
        types = self.verify_sizes()
        if types is None:
            return False
        shape, result = types[0].shape, types[1].shape
        if len(shape) > len(result):
            return fail(self, f"cannot broadcast rank {len(shape)} to rank {len(result)}")
        for axis, (size, target) in enumerate(zip(shape, result[len(result) - len(shape) :], strict=True)):
            if size not in (1, target) and size >= 0 and target >= 0:
                return fail(self, f"cannot broadcast operand dimension {axis} of size {size} to {target}")
        return True


class SpecifyShapeOp(Sized, name="specify_shape", traits=[ext.Pure]):
    """The operand, with the static shape of the result type; checked at run time. The attribute `index` says
    that an index has to fit: IndexError.
    """

    x: ext.Operand[Tensor]
    sizes: Sequence[ext.Operand[ir.IndexType]]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks that the static shapes do not contradict each other."""
        types = self.verify_sizes()
        return types is not None and check_shape(self, types[1].shape, types[0].shape)


class IotaOp(GraphcOp, name="iota", traits=[ext.Pure]):
    """`start + step * i` for i in range(length)."""

    start: ext.Operand[Tensor]
    step: ext.Operand[Tensor]
    length: ext.Operand[ir.IndexType]
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks that start and step are 0-d and the result is 1-d."""
        types = tensor_types(self, 2)
        if types is None or not same_elements(self, types):
            return False
        if types[0].shape or types[1].shape:
            return fail(self, "start and step must be 0-d")
        return check_shape(self, types[2].shape, [-1])

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The length operand."""
        return self.operands[2]
