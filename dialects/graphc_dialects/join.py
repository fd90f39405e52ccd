# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Concatenation."""

from collections.abc import Sequence

from graphc_dialects._base import (
    GraphcOp,
    Tensor,
    add_index,
    check_axis,
    check_shape,
    dim_of,
    fail,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements


class JoinOp(GraphcOp, name="join", traits=[ext.Pure]):
    """Concatenation along an axis. All operands have one type; its size along the axis is usually dynamic."""

    xs: Sequence[ext.Operand[Tensor]]
    axis: ir.IntegerAttr
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the axis, element types and the result shape."""
        types = tensor_types(self)
        if types is None:
            return False
        if len(types) == 1:
            return fail(self, "needs at least one operand")
        axis = check_axis(self, "axis", len(types[0].shape))
        if axis is None or not same_elements(self, types):
            return False
        if any(type_ != types[0] for type_ in types[1:-1]):
            return fail(self, "operands must have one type")
        expected = types[0].shape
        expected[axis] = -1 if expected[axis] < 0 else expected[axis] * (len(types) - 1)
        return check_shape(self, types[-1].shape, expected)

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The sum of sizes along the axis, the first operand's size elsewhere."""
        operands = list(self.operands)
        if dim != self.attributes["axis"].value:
            return dim_of(operands[0], dim)
        total = dim_of(_uncast(operands[0]), dim)
        for operand in operands[1:]:
            total = add_index(total, dim_of(_uncast(operand), dim))
        return total


def _uncast(value: ir.Value) -> ir.Value:
    """The tensor before the `tensor.cast` that made it joinable: its sizes may be static."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "tensor.cast":
        return value
    return owner.operands[0]
