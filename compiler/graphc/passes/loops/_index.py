# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index code of a scan's body: how it depends on the iteration, and copies of it outside."""

from __future__ import annotations

from graphc.ir.affine import key_of
from graphc.ir.constants import CONSTANTS
from graphc.ir.scan_view import ScanView
from graphc.ir.size import Size, combined
from graphc.ir.traits.interfaces import CannotBatch
from graphc_dialects._base import constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, outside_size

_COPIED = ("arith.", "tensor.extract", "tensor.from_elements", *CONSTANTS)
_DEPTH = 64
_LEAVES = frozenset((*CONSTANTS, "tensor.dim"))
INDEX = "index"


def in_iteration(view: ScanView, value: ir.Value, depth: int = _DEPTH) -> Size | None:
    """An index value of the body as a sum of a multiple of the iteration's index, which is named `INDEX`, and
    of what does not depend on it; None if it is none.
    """
    if value == view.index:
        return Size.of(INDEX)
    known = key_of(value)
    if isinstance(known, int):
        return Size(known)
    op = value.owner
    if not view.is_inside(value) or (not isinstance(op, ir.Block) and op.name in _LEAVES):
        return Size.of(value)
    if isinstance(op, ir.Block) or not depth or not op.name.startswith("arith."):
        return None
    forms = [in_iteration(view, operand, depth - 1) for operand in op.operands]
    sums = [form for form in forms if form is not None]
    if len(sums) == len(forms) and not any(form.count(INDEX) for form in sums):
        return Size.of(value)
    if len(sums) < len(forms) or len(forms) != 2:
        return None
    return combined(op.name.removeprefix("arith."), sums[0], sums[1], lambda _: False)


def coefficient(view: ScanView, value: ir.Value) -> int | None:
    """The factor of the iteration's index in an index value of the body; None if it is not affine."""
    found = in_iteration(view, value)
    return None if found is None else found.count(INDEX)


def copy_index(view: ScanView, value: ir.Value, t: ir.Value | None = None) -> ir.Value:
    """An index value of the body, computed again at the current insertion point.

    Args:
        view: the scan.
        value: an index value (or an integer or literal that one is made of).
        t: what stands for the iteration's index; without it, the value must not depend on the iteration.

    Raises:
        CannotBatch: it depends on more than sizes, literals, what is outside and `t`.
    """
    if value == view.index:
        if t is None:
            raise CannotBatch("an index depends on the iteration")
        return t
    if not view.is_inside(value):
        return value
    op = value.owner
    if isinstance(op, ir.Block):
        raise CannotBatch("an index depends on an inner loop")
    if op.name == "tensor.dim":
        return copy_size(view, op.operands[0], constant_value(op.operands[1]))
    if not op.name.startswith(_COPIED) or len(op.results) != 1:
        raise CannotBatch(f"an index is computed by {op.name}")
    operands = [copy_index(view, operand, t) for operand in op.operands]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [op.results[0].type], operands, attributes, loc=op.location).result


def copy_size(view: ScanView, tensor: ir.Value, axis: int | None) -> ir.Value:
    """The size of a tensor of the body along an axis, computed outside."""
    if axis is None:
        raise CannotBatch("the axis of a size is not known")
    if not view.is_inside(tensor):
        return dim_of(tensor, axis)
    try:
        return outside_size(view.op, tensor, axis)
    except UnknownSize as error:
        raise CannotBatch(str(error)) from None
