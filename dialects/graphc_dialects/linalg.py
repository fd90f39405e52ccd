# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear algebra."""

from graphc_dialects._base import Flag, GraphcOp, Tensor, check_bool, check_shape, dim_of, fail, tensor_types
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements


class MatmulOp(GraphcOp, name="matmul", traits=[ext.Pure]):
    """Matrix product of the last two axes; leading axes, if any, are a batch and agree.

    Elements are of one type, or halves whose products are added up in float32.
    """

    a: ext.Operand[Tensor]
    b: ext.Operand[Tensor]
    transpose_a: Flag
    transpose_b: Flag
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks ranks, the summed and batch sizes, element types and the result shape."""
        types = tensor_types(self)
        if types is None or not check_bool(self, "transpose_a") or not check_bool(self, "transpose_b"):
            return False
        of_halves = [str(each.element_type) for each in types] == ["f16", "f16", "f32"]
        if not of_halves and not same_elements(self, types):
            return False
        a, b = types[0].shape, types[1].shape
        if len(a) < 2 or len(a) != len(b):
            return fail(self, f"operands must have equal ranks of at least 2, but have {len(a)} and {len(b)}")
        if self.attributes["transpose_a"].value:
            a = [*a[:-2], a[-1], a[-2]]
        if self.attributes["transpose_b"].value:
            b = [*b[:-2], b[-1], b[-2]]
        if a[-1] != b[-2] and a[-1] >= 0 and b[-2] >= 0:
            return fail(self, f"summed dimensions disagree: {a[-1]} and {b[-2]}")
        for axis, (left, right) in enumerate(zip(a[:-2], b[:-2], strict=True)):
            if left != right and left >= 0 and right >= 0:
                return fail(self, f"batch dimension {axis} disagrees: {left} and {right}")
        batch = [left if left >= 0 else right for left, right in zip(a[:-2], b[:-2], strict=True)]
        return check_shape(self, types[2].shape, [*batch, a[-2], b[-1]])

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """Rows of a, columns of b, or the batch size."""
        a, b = self.operands
        rank = len(a.type.shape)
        if dim < rank - 2:
            return dim_of(a, dim)
        if dim == rank - 2:
            return dim_of(a, rank - 1 if self.attributes["transpose_a"].value else rank - 2)
        return dim_of(b, rank - 2 if self.attributes["transpose_b"].value else rank - 1)
