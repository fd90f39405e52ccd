# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations of a function with scans are needed, seen through states and results by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import is_removable
from graphc.ir.scan_view import SCAN, name_of
from graphc.ir.walk import walk
from graphc_dialects.scan_verify import DECLARATIONS, declarations

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class Liveness:
    """Marks what a function needs, from its results and checks backwards.

    A declaration is needed if one of its traces or reads is: a state that only feeds itself is not. All
    levels of nesting are treated in one sweep, as an inner scan may be what keeps an outer state alive.

    Args:
        function: a `func.func`.
    """

    def __init__(self, function: ir.Operation) -> None:
        self._operations = walk(function)
        self._declared: dict[ir.Operation, dict[str, ir.Operation]] = {}
        self._effects: dict[ir.Operation, list[ir.Operation]] = {}
        self._live: set[ir.Operation] = set()
        self._pending: list[ir.Operation] = []
        self._find_effects(function.operation)
        while self._pending:
            self._visit(self._pending.pop())

    def _find_effects(self, function: ir.Operation) -> None:
        """Sorts the operations that are needed for what they do by the operation around them."""
        for op in self._operations:
            if op.name == SCAN:
                self._declared[op] = declarations(op)
            elif not is_removable(op) and op.name not in DECLARATIONS:
                self._effects.setdefault(op.parent.operation, []).append(op)
        for op in self._effects.get(function, ()):
            self._mark(op)

    def _mark(self, op: ir.Operation) -> None:
        if op not in self._live:
            self._live.add(op)
            self._pending.append(op)

    def _visit(self, op: ir.Operation) -> None:
        for operand in op.operands:
            owner = operand.owner
            if hasattr(owner, "operation"):
                self._mark(owner.operation)
        name = op.name
        if name in (SCAN, "scf.if"):
            for effect in self._effects.get(op, ()):
                self._mark(effect)
        elif name == "graphc.scan_trace":
            self._mark(self._declared[op.operands[0].owner.operation][name_of(op)])
        elif name == "graphc.scan_prev":
            self._mark(self._declared[op.operands[0].owner.owner.operation][name_of(op)])

    def sweep(self) -> dict[str, int]:
        """Erases what is not needed; returns numbers by kind."""
        counts: dict[str, int] = {}
        for op in reversed(self._operations):
            if op in self._live:
                continue
            name = op.name
            kind = _KINDS.get(name)
            if kind is None and op.parent.name == SCAN:
                kind = "operations removed"
            if kind is not None and name != "graphc.scan_end":
                counts[kind] = counts.get(kind, 0) + 1
            op.erase()
        return counts


_KINDS = {
    SCAN: "scans removed",
    "graphc.scan_carry": "states removed",
    "graphc.scan_collect": "outputs removed",
    "graphc.scan_seq": "reads removed",
    "graphc.scan_prev": "reads removed",
    "graphc.scan_trace": "traces removed",
    "graphc.scan_steps": "traces removed",
}
