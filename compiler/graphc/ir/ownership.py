# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whose memory a value is in, and whether an operation may overwrite it.

The one place that decides it, while the readers of values can still be told: after bufferization a value
that was put into a result, or into a part of a join, has no reader there any more that would protect it.

Any value may be placed in a buffer. Who overwrites a buffer (a scan its initial rows, an update what it
starts from) needs all of it: of every value that lies there, nobody else may be a reader, wherever that
reader stands: views are read when what they are read for is computed, and results are copied at the end.
"""

from __future__ import annotations

from graphc.ir.constants import CONSTANTS
from graphc.ir.scan_view import ScanView, is_read, is_trace, name_of
from graphc.ir.views import INLINED, JOINS, RENAMES, keeps_order
from graphc.ir.walk import definition, is_used_once
from graphc_dialects._mlir import ir
from graphc_dialects.write import is_write, reads_buffer


def owns_memory(value: ir.Value, block: ir.Block) -> bool:
    """True if a tensor was computed in a block and its only use is the one it is asked for.

    What only gives memory another name is looked through: each of these values must have one use, too. So
    must what lies in a part of a buffer that it is. All that is not known to be computed afresh belongs to
    others: arguments, results of conditionals.
    """
    while True:
        op = definition(value)
        if op is None or op.block != block or not is_used_once(value):
            return False
        if op.name == "tensor.empty":
            return True
        if op.name not in RENAMES:
            return computes(op) and has_no_other_reader(op)
        if not keeps_order(op):
            return False
        value = op.operands[0]


def has_no_other_reader(op: ir.Operation) -> bool:
    """True if nobody else reads the memory in which an operation computes its result, which is used once."""
    if is_trace(op):
        # Of several traces of one state all are the same rows.
        return len(ScanView(op.operands[0].owner).traces(name_of(op))) == 1
    readers = _readers_of_parts(op)
    placed = dict.fromkeys(reader.operands[0] for reader in readers if is_write(reader))
    return all(_lies_alone(value, readers, op.block) for value in placed or op.operands if readers)


def _readers_of_parts(op: ir.Operation) -> list[ir.Operation]:
    """The operations of a block that put values into parts of the buffer that a result is.

    What the regions of a conditional write there is gone when they end.
    """
    if op.name in JOINS:
        return [op]
    tokens = list(op.operands)[1:] if reads_buffer(op) else ()
    return [op for op in map(definition, tokens) if op is not None and is_write(op)]


def _lies_alone(value: ir.Value, readers: list[ir.Operation], block: ir.Block) -> bool:
    """True if nobody but these operations reads the memory of a value.

    Operations of the value's own cluster see the element that they are about to store. What is computed in
    another block, or by none (arguments, literals), is copied.
    """
    while True:
        op = definition(value)
        if op is None or op.block != block or op.name in CONSTANTS:
            return True
        users = [use.owner.operation for use in value.uses]
        if not all(user in readers or _are_fused(op, user) for user in users):
            return False
        if op.name not in RENAMES:
            return not computes(op) or has_no_other_reader(op)
        value, readers = op.operands[0], [op]


def _are_fused(a: ir.Operation, b: ir.Operation) -> bool:
    """True if two operations are of one cluster."""
    if a.block != b.block or "cluster" not in a.attributes or "cluster" not in b.attributes:
        return False
    return bool(a.attributes["cluster"] == b.attributes["cluster"])


def computes(op: ir.Operation) -> bool:
    """True if an operation computes its result, in memory that may be chosen for it: it is no view of
    another array, no row of one, and no literal.
    """
    name = op.name
    borrowed = name in INLINED or name in RENAMES or name in CONSTANTS or is_read(op)
    return name.startswith("graphc.") and not borrowed


def updates_in_place(op: ir.Operation) -> bool:
    """True if an update takes over the memory of the older tensor, which nothing else reads."""
    return owns_memory(op.operands[0], op.block)


def renames(op: ir.Operation) -> bool:
    """True if the result of an operation has its operand's elements in the same order, in the same memory."""
    return op.name in RENAMES and keeps_order(op)


def updates_argument(update: ir.Operation, x: ir.Value | None) -> bool:
    """True if an update starts from an argument, perhaps in another shape."""
    value = update.operands[0]
    while x is not None and value != x and (made := definition(value)) is not None and renames(made):
        value = made.operands[0]
    return x is not None and bool(value == x)
