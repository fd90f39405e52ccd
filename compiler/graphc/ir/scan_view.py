# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.scan` operations as the scan passes see them."""

from __future__ import annotations

from typing import Any

from graphc.ir.views import Create, create_here
from graphc.names import unique_name
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.scan_verify import is_state as is_state
from graphc_dialects.scan_verify import row_shape as row_shape
from graphc_dialects.walk import is_inside, walk_for

SCAN, END = "graphc.scan", "graphc.scan_end"
# Attribute of a scan that was made of two, until what both compute is one.
MERGED = "merged"


def is_scan(op: ir.Operation) -> bool:
    """True if an operation is a loop of a program."""
    return op.name == SCAN


def is_read(op: ir.Operation) -> bool:
    """True if an operation gives a row of a state of the loop that it is in."""
    return op.name == "graphc.scan_prev"


def is_trace(op: ir.Operation) -> bool:
    """True if an operation gives the rows that a loop keeps of a state or output."""
    return op.name == "graphc.scan_trace"


def counts_steps(op: ir.Operation) -> bool:
    """True if an operation gives the number of iterations that a loop has run."""
    return op.name == "graphc.scan_steps"


def scans(root: ir.Operation) -> list[ir.Operation]:
    """The scans below an operation, inner ones before the scan that contains them."""
    return walk_for(root, (SCAN,))[::-1]


class ScanView:
    """One scan, read by role. Nothing is cached: a view stays true while the scan is rewritten.

    Args:
        op: the `graphc.scan` operation.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op = op.operation

    @property
    def block(self) -> Any:
        """The body."""
        return self.op.regions[0].blocks[0]

    @property
    def index(self) -> Any:
        """The iteration's index `%t`."""
        return self.block.arguments[0]

    @property
    def steps(self) -> ir.Value:
        """The operand with the number of iterations (for a while scan: their bound)."""
        return self.op.operands[0]

    @property
    def reverse(self) -> bool:
        """True if `%t` runs downwards."""
        return bool(ir.BoolAttr(self.op.attributes["reverse"]).value)

    @property
    def end(self) -> ir.Operation:
        """The terminator."""
        return self.block.operations[-1].operation

    @property
    def stop(self) -> ir.Value | None:
        """The condition that ends a while scan, or None."""
        operands = list(self.end.operands)
        return operands[0] if operands else None

    def operations(self) -> list[ir.Operation]:
        """All operations of the body but the terminator."""
        return [op.operation for op in self.block.operations][:-1]

    def work(self) -> list[ir.Operation]:
        """The operations of the body that declare nothing."""
        return [op for op in self.operations() if op.name not in DECLARATIONS]

    def declarations(self) -> dict[str, ir.Operation]:
        """`scan_carry` and `scan_collect` operations by name, in order."""
        return {name_of(op): op for op in self.operations() if op.name in DECLARATIONS}

    def carries(self) -> dict[str, ir.Operation]:
        """States by name."""
        return {name: op for name, op in self.declarations().items() if is_state(op)}

    def collects(self) -> dict[str, ir.Operation]:
        """Outputs (nit-sot) by name."""
        return {name: op for name, op in self.declarations().items() if not is_state(op)}

    def reads(self, name: str | None = None) -> list[ir.Operation]:
        """The `scan_prev` operations of a state, or of all states."""
        found = [use.owner.operation for use in self.index.uses]
        found = [op for op in found if is_read(op)]
        return [op for op in found if name is None or name_of(op) == name]

    def count_steps_as(self, steps: ir.Value) -> int:
        """Gives all who ask for the number of iterations that were run a value; returns how many asked."""
        asked = self.step_counts()
        for op in asked:
            op.results[0].replace_all_uses_with(steps)
            op.erase()
        return len(asked)

    def renumber(self, shift: ir.Value) -> None:
        """Adds to the index as the body computes with it; the rows that it reads stay what they are."""
        uses = [(use.owner.operation, use.operand_number) for use in self.index.uses]
        uses = [(op, position) for op, position in uses if not is_read(op)]
        if uses:
            with ir.InsertionPoint.at_block_begin(self.block), self.op.location:
                index = self.index + shift
            for op, position in uses:
                op.operands[position] = index

    def traces(self, name: str | None = None) -> list[ir.Operation]:
        """The `scan_trace` operations that take a result, or any result."""
        found = [use.owner.operation for use in self.op.results[0].uses]
        found = [op for op in found if is_trace(op)]
        return [op for op in found if name is None or name_of(op) == name]

    def reads_state(self, op: ir.Operation, name: str | None = None) -> bool:
        """True if an operation is one of `reads`."""
        return is_read(op) and op.operands[0] == self.index and (name is None or name_of(op) == name)

    def read(self, name: str, tap: int, type_: ir.Type) -> ir.Value:
        """The row of a state from `-tap` iterations ago, at the current insertion point."""
        offset = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), tap)
        return create_here("graphc.scan_prev", [self.index], type_, state=ir.StringAttr.get(name), tap=offset)

    def step_counts(self) -> list[ir.Operation]:
        """The `scan_steps` operations."""
        users = [use.owner.operation for use in self.op.results[0].uses]
        return [op for op in users if counts_steps(op)]

    def is_inside(self, value: ir.Value) -> bool:
        """True if a value is defined in the body (or in a loop in it)."""
        return is_inside(value, self.op)

    def with_unique(self, name: str) -> str:
        """The name, or the name with a number, so that no state or output of this scan has it."""
        return unique_name(name, self.declarations())


def name_of(op: ir.Operation) -> str:
    """The `state` attribute of a declaration, `scan_prev` or `scan_trace`."""
    return str(ir.StringAttr(op.attributes["state"]).value)


def scan_name(scan: ir.Operation) -> str:
    """The name of a `graphc.scan`, which need not have one."""
    return str(ir.StringAttr(scan.attributes["name"]).value) if "name" in scan.attributes else "scan"


def tap_of(read: ir.Operation) -> int:
    """The offset of the row that a `scan_prev` reads."""
    return int(ir.IntegerAttr(read.attributes["tap"]).value)


def taps_of(carry: ir.Operation) -> list[int]:
    """Offsets a state is read at, ascending."""
    return list(ir.DenseI64ArrayAttr(carry.attributes["taps"]))


def writes_of(declaration: ir.Operation) -> list[int]:
    """Offsets a state is written at, ascending; the last is 0, the only one of an output."""
    return list(ir.DenseI64ArrayAttr(declaration.attributes["writes"])) if is_state(declaration) else [0]


def window_of(declaration: ir.Operation) -> int:
    """Number of initial rows of a state; an output has none."""
    return -taps_of(declaration)[0] if is_state(declaration) else 0


def new_rows_of(declaration: ir.Operation) -> list[ir.Value]:
    """Rows that an iteration adds to a state or output: one for each of `writes_of`."""
    return list(declaration.operands)[1 if is_state(declaration) else 0 :]


def traced(trace: ir.Operation) -> tuple[ScanView, ir.Operation]:
    """The scan that a trace is of, and the declaration of what it keeps."""
    view = ScanView(trace.operands[0].owner)
    return view, view.declarations()[name_of(trace)]


def take_trace(view: ScanView, name: str, type_: ir.Type, create: Create = create_here) -> ir.Value:
    """The trace of a state or output that a scan keeps; see `graphc.ir.views.dimshuffle` for `create`."""
    return create("graphc.scan_trace", [view.op.results[0]], type_, state=ir.StringAttr.get(name))


def collect(row: ir.Value, name: str, keep: str = "steps") -> ir.Operation:
    """The declaration of a new output, at the current insertion point."""
    attributes = {"state": ir.StringAttr.get(name), "keep": ir.StringAttr.get(keep)}
    return ir.Operation.create(DECLARATIONS[1], [], [row], attributes)


def redeclared(carry: ir.Operation, operands: list[ir.Value], **arrays: list[int]) -> ir.Operation:
    """A state declared anew: with other rows, and other `taps` or `writes`."""
    attributes = {name: carry.attributes[name] for name in carry.attributes}
    for name, values in arrays.items():
        attributes[name] = ir.DenseI64ArrayAttr.get(values)
    with ir.InsertionPoint(carry), carry.location:
        new = ir.Operation.create(carry.name, [], operands, attributes)
    carry.erase()
    return new


def retention(declaration: ir.Operation) -> tuple[str, int | None]:
    """`keep`, and the number of rows with `"last"`."""
    keep = str(ir.StringAttr(declaration.attributes["keep"]).value)
    return keep, ir.IntegerAttr(declaration.attributes["rows"]).value if keep == "last" else None


def mark_reread(value: ir.Value) -> None:
    """Tells scan-save-mem, if a value is what a scan keeps, that it is read in another way than before."""
    if not isinstance(value.owner, ir.Block) and is_trace(value.owner):
        value.owner.operands[0].owner.attributes["reread"] = ir.UnitAttr.get()


def is_padded(declaration: ir.Operation) -> bool:
    """True if there may be fewer rows than `"last"` keeps, zeros standing for those that are missing."""
    return "padded" in declaration.attributes


def set_retention(
    declaration: ir.Operation, keep: str, rows: int | None = None, padded: bool = False
) -> None:
    """Changes what is kept. The types of the traces have to be changed to match."""
    declaration.attributes["keep"] = ir.StringAttr.get(keep)
    if padded:
        declaration.attributes["padded"] = ir.UnitAttr.get()
    elif "padded" in declaration.attributes:
        del declaration.attributes["padded"]
    if rows is not None:
        declaration.attributes["rows"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rows)
    elif "rows" in declaration.attributes:
        del declaration.attributes["rows"]
