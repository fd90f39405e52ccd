# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of a body that cannot fail, so that they may be done for rows that no iteration computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.constants import CONSTANTS
from graphc.ir.totality import reports_no_errors
from graphc.ir.traits.interfaces import BATCH, is_always_total
from graphc_dialects.elementwise import ELEMENTWISE
from graphc_dialects.signatures import SIGNATURES

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


def is_total(op: ir.Operation) -> bool:
    """Whether an operation cannot fail, whatever its operands hold."""
    if op.name in CONSTANTS or op.name == "tensor.cast":
        return True
    if op.name in BATCH:
        return is_always_total(op.name)
    if op.name.startswith("graphc.") and op.name[7:] in SIGNATURES:
        return reports_no_errors(op) and _fits(op)
    if not op.name.startswith("graphc.") or op.name[7:] not in ELEMENTWISE:
        return False
    shapes = zip(*(operand.type.shape for operand in op.operands), strict=True)
    return all(_agree([size for size in sizes if size != 1]) for sizes in shapes)


def _agree(sizes: list[int]) -> bool:
    return len(sizes) < 2 or (sizes[0] >= 0 and len(set(sizes)) == 1)


def _fits(op: ir.Operation) -> bool:
    """Whether the operands of a kernel operation have sizes that are known to be right."""
    signature = SIGNATURES[op.name[7:]]
    sizes: dict[ir.Value, list[int]] = {}
    for operand, core in zip(op.operands, signature.operands, strict=False):
        shape = operand.type.shape
        for axis, dim in enumerate([*range(len(shape) - len(core)), *core]):
            sizes.setdefault(dim, []).append(shape[axis])
    return not signature.given and all(_agree(found) for found in sizes.values())
