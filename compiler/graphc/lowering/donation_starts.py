# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the memory of a result is first written, and what may be read from it meanwhile."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from graphc.ir.kinds import PRODUCTS, REDUCTIONS, static_shape
from graphc.ir.ownership import renames, updates_in_place
from graphc.ir.scan_view import ScanView, is_trace, retention, traced, writes_of
from graphc.ir.views import GATHERS, INLINED, JOINS, RENAMES, TAKES_ROW, UPDATES
from graphc.lowering.recurrences import RECURRENCES
from graphc.lowering.units import Units
from graphc.lowering.vector_products import is_vector_product
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.write import is_write, reads_buffer, root_of


class Refused(Exception):
    """A result cannot be computed in an argument; the message says why."""


class Reads(Enum):
    """What an operation may read of the memory that it computes a result in."""

    NOTHING = "it writes elements before it has read all"
    HERE = "the element that it writes"
    ROW = "the row that it writes, which is stored at the end of an iteration"
    ALL = "it writes after its last read"


class Start(NamedTuple):
    """Where a result begins.

    Attributes:
        value: the first of the values that are computed in its memory, one from the other.
        writer: the operation that first writes there.
        reads: what the writer may read there.
        waits: whether the writer asks for the memory itself, as for that of other results; else it starts
            from the argument's tensor.
    """

    value: Any
    writer: Any
    reads: Reads
    waits: bool = False


def find_start(value: ir.Value, x: ir.Value, block: ir.Block) -> Start:
    """Where the computation of a result begins if it is made in the memory of x.

    Args:
        value: the result.
        x: the argument.
        block: of the function.

    Raises:
        Refused: it is not known, or takes a copy in any case.
    """
    view = is_updated = None
    while True:
        op = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if op is None or op.block != block:
            raise Refused("the result of its type is not computed here")
        if any(is_write(use.owner) for use in value.uses):
            raise Refused("the result of its type is part of a joined array")
        if renames(op) and not is_updated:
            view = op
        elif op.name not in UPDATES or op.operands[0] == x or not updates_in_place(op):
            break
        else:
            is_updated = op
        value = op.operands[0]
    start = _start_at(value, op, x)
    if view is not None and not start.waits:
        start = start._replace(reads=Reads.NOTHING)
    if is_updated is not None and start.waits:
        raise Refused(f"what {op.name} computes for the result is then updated")
    return start


def _start_at(value: ir.Value, op: ir.Operation, x: ir.Value) -> Start:
    if op.name in UPDATES:
        return Start(value, op, Reads.HERE if op.operands[0] == x else Reads.NOTHING)
    if Units.is_loop(op):
        return Start(value, op, Reads.NOTHING if op.name in REDUCTIONS else Reads.HERE)
    if op.name in PRODUCTS:
        return Start(value, op, Reads.NOTHING, waits=is_vector_product(op))
    if op.name in RECURRENCES:
        return Start(value, op, Reads.NOTHING)
    if op.name in JOINS or op.name == "scf.if":
        return Start(value, op, Reads.NOTHING, waits=True)
    if reads_buffer(op):
        return Start(value, root_of(op.operands[0]), Reads.NOTHING, waits=True)
    if is_trace(op):
        return _start_of_trace(value, op)
    if op.name in INLINED:
        return Start(value, op.block.operations[-1].operation, Reads.NOTHING)
    raise Refused(f"the result of its type comes from {op.name}, which has memory of its own")


def _start_of_trace(value: ir.Value, op: ir.Operation) -> Start:
    view, declaration = traced(op)
    keep, _ = retention(declaration)
    if keep == "last":
        return Start(value, view.op, Reads.ALL, waits=True)
    writes = writes_of(declaration)
    if view.stop is not None or (keep == "steps" and len(writes) > 1):
        raise Refused(f"the rows of its type are a part of those that {view.op.name} stores")
    is_row = keep == "steps" and len(writes) == 1
    return Start(value, view.op, Reads.ROW if is_row else Reads.NOTHING, waits=True)


def require_harmless(start: Start, use: Any, value: ir.Value, x: ir.Value, reader: ir.Operation) -> None:
    """Refuses a use of x in the operations that write the result, unless it comes before what it reads is
    overwritten.

    Args:
        start: where the result begins.
        use: of `value`, in an operation that takes part in writing the result.
        value: x, or a view of it.
        x: the argument.
        reader: the operation that reads it on account of this use.

    Raises:
        Refused: what it reads may have been overwritten.
    """
    if start.reads is Reads.NOTHING:
        raise Refused(f"{reader.name} reads it while the result is computed")
    if start.reads is Reads.HERE:
        _require_same_position(use, value, x)
    elif start.reads is Reads.ROW:
        _require_same_row(use, value, x, start.writer, reader)


def _require_same_position(use: Any, value: ir.Value, x: ir.Value) -> None:
    """Refuses an operation that does not read x just where it writes."""
    op = use.owner.operation
    if op.name in UPDATES:
        # A view of it is copied before the update.
        if value == x and use.operand_number:
            raise Refused(f"{op.name} reads it while it is updated")
        return
    domain = x if op.name in REDUCTIONS else op.results[0]
    if value != x or op.name in GATHERS or static_shape(domain) != static_shape(x):
        raise Refused(f"{op.name} reads other elements of it than the one it writes")


def _require_same_row(
    use: Any, value: ir.Value, x: ir.Value, scan: ir.Operation, reader: ir.Operation
) -> None:
    """Refuses a scan that reads another row than the one that the iteration stores at its end."""
    op = use.owner.operation
    is_seq = op.name in TAKES_ROW and value == x
    if reader != op or (not is_seq and not _is_of_row(value)):
        raise Refused(f"{op.name} reads rows that have been overwritten")
    if is_seq and op.operands[1] != ScanView(scan).index:
        raise Refused(f"{scan.name} reads other rows of it than the one it stores")
    # What an iteration stores or carries on is read when it stores.
    if op.parent.operation == scan and op.name in DECLARATIONS:
        raise Refused(f"{scan.name} stores a row of it as it is")


def _is_of_row(value: ir.Value) -> bool:
    """Whether a value is a row of a sequence, or a view of such a row."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner
        if op.name in TAKES_ROW:
            return True
        if op.name not in INLINED and op.name not in RENAMES:
            return False
        value = op.operands[0]
    return False
