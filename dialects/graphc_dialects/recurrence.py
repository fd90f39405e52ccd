# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences along the first axis: loops whose every row is a known function of the row before."""

from graphc_dialects._base import (
    Flag,
    GraphcOp,
    Tensor,
    add_index,
    attribute_of,
    check_bool,
    check_shape,
    const_index,
    dim_of,
    fail,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir
from graphc_dialects.shape import same_elements

KINDS = ("add", "mul", "max", "min", "and", "or")


class Recurrence(GraphcOp):
    """Base of operations that make `n` rows, each from the one before, beginning with `initial`.

    The operands before `initial` hold one row for each step; a dimension of static size 1 broadcasts, so
    that one row can serve all steps. `initial` is a stack of one row. With `keep_initial` the result has `n
    + 1` rows, that one first. With `reverse` step 0 uses the last row and everything is stored in that
    order, so that the initial row comes last.
    """

    def verify_invariants(self) -> bool:
        """Checks flags, element types and the static part of the shapes."""
        tensors = len(self.operands) - 1
        types = tensor_types(self, tensors)
        if types is None or not same_elements(self, types):
            return False
        if not isinstance(self.operands[tensors].type, ir.IndexType):
            return fail(self, f"the number of steps must be an index, but is {self.operands[tensors].type}")
        if not all(check_bool(self, name) for name in ("reverse", "keep_initial")):
            return False
        *rows, initial, result = [list(type_.shape) for type_ in types]
        if not initial or initial[0] != 1:
            return fail(self, "initial must be a stack of one row: its first dimension must be 1")
        if any(len(shape) != len(initial) for shape in rows):
            return fail(self, f"operands must have rank {len(initial)}, like initial")
        for shape in rows:
            for axis, (have, want) in enumerate(zip(shape, initial, strict=True)):
                if axis and have not in (1, want) and have >= 0 and want >= 0:
                    return fail(self, f"dimension {axis} of a row starts as {want}, but goes on as {have}")
        steps = next((shape[0] for shape in rows if shape[0] not in (1, -1) and shape[0] >= 0), None)
        length = -1 if steps is None else steps + self.attributes["keep_initial"].value
        return check_shape(self, result, [length, *initial[1:]])

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """Rows: the number of steps, and one for the initial row where it is kept. Others: as initial."""
        *_, initial, steps = self.operands
        if dim:
            return dim_of(initial, dim)
        return add_index(steps, const_index(1)) if self.attributes["keep_initial"].value else steps


class CumulativeOp(Recurrence, name="cumulative", traits=[ext.Pure]):
    """Running sum, product, maximum, ... along the first axis: `r[t] = r[t-1] (+) x[t]`, from `initial`.

    `kind` is add, mul, max, min (NaN wins), and, or (bitwise). With `reassociate`, floating products may be
    computed in blocks.
    """

    x: ext.Operand[Tensor]
    initial: ext.Operand[Tensor]
    n: ext.Operand[ir.IndexType]
    kind: ir.StringAttr
    reverse: Flag
    keep_initial: Flag
    reassociate: Flag
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the kind and that it is defined for the element type; the rest as for all recurrences."""
        kind = attribute_of(self, "kind")
        if not isinstance(kind, ir.StringAttr) or kind.value not in KINDS:
            return fail(self, f"needs an attribute 'kind' that is one of {', '.join(KINDS)}")
        if not check_bool(self, "reassociate") or not Recurrence.verify_invariants(self):
            return False
        element = self.operands[0].type.element_type
        if kind.value in ("and", "or") and not isinstance(element, ir.IntegerType):
            return fail(self, f"'{kind.value}' needs integers or booleans, but the element type is {element}")
        if kind.value in ("max", "min") and isinstance(element, ir.ComplexType):
            return fail(self, f"'{kind.value}' is not defined for complex numbers here")
        return True


class LinearRecurrenceOp(Recurrence, name="linear_recurrence", traits=[ext.Pure]):
    """First-order linear recurrence along the first axis: `r[t] = a[t] * r[t-1] + b[t]`, from `initial`.

    With `reassociate`, several steps may be made at once with precomputed products of `a`.
    """

    a: ext.Operand[Tensor]
    b: ext.Operand[Tensor]
    initial: ext.Operand[Tensor]
    n: ext.Operand[ir.IndexType]
    reverse: Flag
    keep_initial: Flag
    reassociate: Flag
    res: ext.Result[Tensor]

    def verify_invariants(self) -> bool:
        """Checks the flags, element types and shapes."""
        return check_bool(self, "reassociate") and Recurrence.verify_invariants(self)
