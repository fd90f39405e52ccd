# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`graphc.scan` operations as the scan passes see them."""

from __future__ import annotations

from typing import Any

from graphc.ir.walk import walk
from graphc.names import unique_name
from graphc_dialects._mlir import ir
from graphc_dialects.scan_verify import DECLARATIONS, is_inside

SCAN = "graphc.scan"


def scans(root: ir.Operation) -> list[ir.Operation]:
    """The scans below an operation, inner ones before the scan that contains them."""
    return [op for op in reversed(walk(root)) if op.name == SCAN]


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
        """Whether `%t` runs downwards."""
        return bool(ir.BoolAttr(self.op.attributes["reverse"]).value)

    @property
    def end(self) -> ir.Operation:
        """The terminator."""
        return list(self.block.operations)[-1].operation

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
        return {name: op for name, op in self.declarations().items() if op.name == "graphc.scan_carry"}

    def collects(self) -> dict[str, ir.Operation]:
        """Outputs (nit-sot) by name."""
        return {name: op for name, op in self.declarations().items() if op.name == "graphc.scan_collect"}

    def reads(self, name: str | None = None) -> list[ir.Operation]:
        """The `scan_prev` operations of a state, or of all states."""
        found = [use.owner.operation for use in self.index.uses]
        found = [op for op in found if op.name == "graphc.scan_prev"]
        return [op for op in found if name is None or name_of(op) == name]

    def traces(self, name: str | None = None) -> list[ir.Operation]:
        """The `scan_trace` operations that take a result, or any result."""
        found = [use.owner.operation for use in self.op.results[0].uses]
        found = [op for op in found if op.name == "graphc.scan_trace"]
        return [op for op in found if name is None or name_of(op) == name]

    def step_counts(self) -> list[ir.Operation]:
        """The `scan_steps` operations."""
        users = [use.owner.operation for use in self.op.results[0].uses]
        return [op for op in users if op.name == "graphc.scan_steps"]

    def is_inside(self, value: ir.Value) -> bool:
        """Whether a value is defined in the body (or in a loop in it)."""
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


def taps_of(carry: ir.Operation) -> list[int]:
    """Offsets a state is read at, ascending."""
    return list(ir.DenseI64ArrayAttr(carry.attributes["taps"]))


def writes_of(carry: ir.Operation) -> list[int]:
    """Offsets a state is written at, ascending; the last is 0."""
    return list(ir.DenseI64ArrayAttr(carry.attributes["writes"]))


def retention(declaration: ir.Operation) -> tuple[str, int | None]:
    """`keep`, and the number of rows with `"last"`."""
    keep = str(ir.StringAttr(declaration.attributes["keep"]).value)
    return keep, ir.IntegerAttr(declaration.attributes["rows"]).value if keep == "last" else None


def mark_reread(value: ir.Value) -> None:
    """Tells scan-save-mem, if a value is what a scan keeps, that it is read in another way than before."""
    if not isinstance(value.owner, ir.Block) and value.owner.name == "graphc.scan_trace":
        value.owner.operands[0].owner.attributes["reread"] = ir.UnitAttr.get()


def is_padded(declaration: ir.Operation) -> bool:
    """Whether there may be fewer rows than `"last"` keeps, zeros standing for those that are missing."""
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
