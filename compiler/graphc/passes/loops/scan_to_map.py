# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops without carried dependence."""

from __future__ import annotations

from graphc.ir.rewrite import erase_unused
from graphc.ir.scan_view import ScanView, is_padded, mark_reread, retention, scans
from graphc.ir.traits.interfaces import CannotBatch
from graphc.ir.views import TAKES_ROW
from graphc.passes.loops._cost import loop_elements
from graphc.passes.loops._last_row import LastRowUses
from graphc.passes.loops._stack import (
    Trial,
    batcher_of,
    build,
    drop_if_empty,
    last_rows,
    read_row,
    replace_traces,
    state_dependences,
    stored_elements,
)
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class ScanToMap(Pass):
    """Computes the outputs of a scan that depend on no state for all iterations at once.

    An output whose value depends on sequences, the iteration's index and what is outside alone becomes
    operations on whole stacks of rows (elementwise, reductions, matrix products, gathers ...: the rules of
    scan-push-out-seq), which fusion, vectorisation and BLAS then treat as any other code. The output
    disappears from the scan; a scan that has nothing left to do is erased. What else the body does with
    such a value reads its row.

    Only the rows that are kept are computed; an output of which only the last row is used waits for
    scan-save-mem to say so. What can fail where the loop would not have run, or has no
    batched form (an inner scan, a gather of rows from rows), stays in the loop. So does what would need
    much memory: of an intermediate result that has to be stored (one that is not elementwise and no view),
    a row must not have more than `max-row-growth` times the elements that an iteration reads from sequences
    and keeps; unknown sizes count as 64. Scans with a stop condition are left alone: how many rows there
    are is known at the end only.

    A scan that remains, but has no state and no stop condition, gets the attribute `parallel`: its
    iterations may be run in any order.

    Options:
        max-row-growth: limit on the memory of intermediate results, see above.

    Source: PyTensor's `scan_push_out_seq`, whose full case ("the whole inner graph was pushed out") this is.
    """

    stage = "graph"
    max_row_growth: int = 4

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            view = ScanView(op)
            if view.stop is not None:
                continue
            moved = sum(self._move(view, name) for name in view.collects())
            if moved:
                self.count("outputs", moved)
                if drop_if_empty(view):
                    self.count("scans removed")
                    continue
            if not view.carries() and "parallel" not in view.op.attributes:
                view.op.attributes["parallel"] = ir.UnitAttr.get()
                self.count("parallel scans")

    def _move(self, view: ScanView, name: str) -> bool:
        """Moves one output out of a scan, if it can be."""
        collect = view.collects()[name]
        value = collect.operands[0]
        if value in state_dependences(view) or not self._has_room(view, value):
            return False
        rows = retention(collect)[1]
        if is_padded(collect) or not view.traces(name) or (rows is None and LastRowUses(view, name).only):
            return False
        with Trial(view.op) as trial:
            try:
                batcher = batcher_of(view) if rows is None else batcher_of(view, *last_rows(view, rows))
                stack = batcher.repeated(build(batcher, view, value))
            except CannotBatch:
                return False
            trial.keep()
        replace_traces(view, name, stack)
        collect.erase()
        if rows is None:
            _read_row(view, value, stack)
        else:
            for op in view.work():
                if op.name in TAKES_ROW:
                    mark_reread(op.operands[0])
        erase_unused(view.work())
        trial.tidy()
        return True

    def _has_room(self, view: ScanView, value: ir.Value) -> bool:
        return stored_elements(view, value) <= self.max_row_growth * loop_elements(view)


def _read_row(view: ScanView, value: ir.Value, stack: ir.Value) -> None:
    """Lets the rest of the body read a value that is stored now, instead of computing it again."""
    if not view.is_inside(value) or value.owner.name in TAKES_ROW or not list(value.uses):
        return
    read_row(view, value, stack)
