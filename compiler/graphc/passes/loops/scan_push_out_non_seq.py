# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves work that does not depend on the iteration before the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.constants import CONSTANTS
from graphc.ir.scan_view import ScanView, scans
from graphc.ir.totality import Totality
from graphc.ir.traits import POSITIONAL
from graphc.ir.views import INLINED, RENAMES
from graphc.ir.walk import functions, inputs_of, walk
from graphc.passes import Pass
from graphc_dialects._base import constant_value
from graphc_dialects.check import raises
from graphc_dialects.scan_verify import DECLARATIONS

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

# They cost nothing where they are read, and would occupy memory during the whole loop.
_FREE = (INLINED, RENAMES, CONSTANTS)


class ScanPushOutNonSeq(Pass):
    """Hoists operations all of whose operands are defined outside of the loop.

    Inner loops come first, so that work moves out of as many loops as possible; an inner loop that depends on
    nothing of the outer one moves as a whole. Views and constants stay, unless something that moves reads
    them: every reader computes them for free.

    A loop may run no iteration at all, so only what cannot fail is moved: sizes that have to agree must be
    known to, positions must be in range. `graphc.check` stays, but one that is known to hold is removed.
    Where a loop is known to run, its operations may fail outside as well.

    Source: PyTensor's `scan_push_out_non_seq`, and loop-invariant code motion.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            found = scans(function)
            if not found:
                continue
            defs = {result: op for op in walk(function) for result in op.results}
            totality = Totality(defs)
            for op in found:
                self._hoist(ScanView(op), totality)

    def _hoist(self, view: ScanView, totality: Totality) -> None:
        invariant = self._invariant(view, totality)
        wanted: set[object] = set()
        moved = []
        for op in reversed(invariant):
            if not any(op.name in names for names in _FREE) or any(result in wanted for result in op.results):
                wanted.update(inputs_of(op))
                moved.append(op)
        for op in reversed(moved):
            op.move_before(view.op)
            self.count("loops hoisted" if len(op.regions) else "operations hoisted")

    def _invariant(self, view: ScanView, totality: Totality) -> list[ir.Operation]:
        """Operations that may be moved, in order."""
        varying, found, guarded = {view.index}, [], False
        runs = (constant_value(view.steps) or 0) > 0
        for op in view.operations():
            if raises(op):
                if constant_value(op.operands[0]):
                    op.erase()
                    self.count("checks removed")
                else:
                    guarded = True
                continue
            fixed = op.name not in DECLARATIONS and not any(value in varying for value in inputs_of(op))
            safe = fixed and (totality.is_total(op, guarded) or (runs and op.name not in POSITIONAL))
            if safe:
                found.append(op)
            else:
                varying.update(op.results)
        return found
