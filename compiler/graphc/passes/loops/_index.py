# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Index code of a scan's body: how it depends on the iteration, and copies of it outside."""

from __future__ import annotations

from graphc.ir.constants import CONSTANTS
from graphc.ir.scan_view import ScanView
from graphc.ir.traits.interfaces import CannotBatch
from graphc_dialects._base import constant_value, dim_of
from graphc_dialects._mlir import ir
from graphc_dialects.scan_shapes import UnknownSize, outside_size

_COPIED = ("arith.", "tensor.extract", "tensor.from_elements", *CONSTANTS)
_DEPTH = 64


def coefficient(view: ScanView, value: ir.Value, depth: int = _DEPTH) -> int | None:
    """The factor of the iteration's index in an index value of the body; None if it is not affine."""
    if value == view.index:
        return 1
    if not view.is_inside(value):
        return 0
    op = value.owner
    if isinstance(op, ir.Block) or not depth:
        return None
    if op.name in CONSTANTS or op.name == "tensor.dim":
        return 0
    if not op.name.startswith("arith."):
        return None
    factors = [coefficient(view, operand, depth - 1) for operand in op.operands]
    if all(factor == 0 for factor in factors):
        return 0
    if None in factors or op.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (factor or 0 for factor in factors)
    return left + right if op.name == "arith.addi" else left - right


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
