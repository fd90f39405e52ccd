# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations of a function with scans are needed, seen through states and results by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import is_removable
from graphc.ir.scan_view import counts_steps, is_read, is_scan, is_state, is_trace, name_of
from graphc.ir.views import TAKES_ROW
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
        """Sorts the operations that are needed for what they do by the operation around them: checks, and
        what has checks in it.
        """
        for op in self._operations:
            if is_scan(op):
                self._declared[op] = declarations(op)
            if not is_removable(op) and op.name not in DECLARATIONS:
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
        if is_scan(op) or op.name == "scf.if":
            for effect in self._effects.get(op, ()):
                self._mark(effect)
        elif is_trace(op):
            self._mark(self._declared[op.operands[0].owner.operation][name_of(op)])
        elif is_read(op):
            self._mark(self._declared[op.operands[0].owner.owner.operation][name_of(op)])

    def sweep(self) -> dict[str, int]:
        """Erases what is not needed; returns numbers by kind."""
        counts: dict[str, int] = {}
        for op in reversed(self._operations):
            if op in self._live:
                continue
            kind = _kind(op)
            if kind is not None:
                counts[kind] = counts.get(kind, 0) + 1
            op.erase()
        return counts


def _kind(op: ir.Operation) -> str | None:
    """What the statistics call the removal of an operation, if they count it."""
    if is_scan(op):
        return "scans removed"
    if op.name in DECLARATIONS:
        return "states removed" if is_state(op) else "outputs removed"
    if op.name in TAKES_ROW or is_read(op):
        return "reads removed"
    if is_trace(op) or counts_steps(op):
        return "traces removed"
    return "operations removed" if len(op.results) and is_scan(op.parent) else None
