# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whose memory a value is in, and whether an operation may overwrite it.

The one place that decides it, while the readers of values can still be told: after bufferization a value
that was put into a result, or into a part of a join, has no reader there any more that would protect it.
"""

from __future__ import annotations

from graphc.ir.constants import CONSTANTS
from graphc.ir.scan_view import ScanView, is_read, is_trace, name_of
from graphc.ir.views import INLINED, RENAMES, keeps_order
from graphc.ir.walk import is_used_once
from graphc_dialects._mlir import ir


def owns_memory(value: ir.Value, block: ir.Block) -> bool:
    """Whether a tensor was computed in a block and its only use is the one it is asked for.

    What only gives memory another name is looked through: each of these values must have one use, too. All
    that is not known to be computed afresh belongs to others: arguments, results of conditionals.
    """
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.block != block or not is_used_once(value):
            return False
        op = owner.operation
        if op.name == "tensor.empty":
            return True
        if op.name not in RENAMES:
            return computes(op) and not _is_shared_trace(op)
        if not keeps_order(op):
            return False
        value = op.operands[0]


def computes(op: ir.Operation) -> bool:
    """Whether an operation computes its result, in memory that may be chosen for it: it is no view of
    another array, no row of one, and no literal.
    """
    name = op.name
    borrowed = name in INLINED or name in RENAMES or name in CONSTANTS or is_read(op)
    return name.startswith("graphc.") and not borrowed


def updates_in_place(op: ir.Operation) -> bool:
    """Whether an update takes over the memory of the older tensor, which nothing else reads."""
    return owns_memory(op.operands[0], op.block)


def renames(op: ir.Operation) -> bool:
    """Whether the result of an operation has its operand's elements in the same order, in the same memory."""
    return op.name in RENAMES and keeps_order(op)


def _is_shared_trace(op: ir.Operation) -> bool:
    """Whether an operation is one of several that take the same result of a scan."""
    return is_trace(op) and len(ScanView(op.operands[0].owner).traces(name_of(op))) > 1
