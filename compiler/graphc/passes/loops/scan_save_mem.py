# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeps only the rows of a scan's results that a consumer can see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.diagnostics import fail
from graphc.ir.scan_view import ScanView, scans
from graphc.passes.loops._length import Unknowns
from graphc.passes.loops._retention import Retention, use_initial_rows
from graphc.passes.loops._shorten import shorten
from graphc.passes.loops._views import flatten
from graphc.passes.manager.base import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ScanSaveMem(Pass):
    """Keeps of each state and output of a scan only the rows that somebody reads.

    Consumers are followed through slices, casts and moved axes; their offsets, sizes and strides are
    evaluated as piecewise linear functions of the number of iterations, so that what NumPy's rules for
    slices leave (minima, selects) is understood for symbolic lengths too.

    * Nothing but the number of rows is asked for: the result is not kept (`keep = "last"`, 0 rows).
    * Only the last n rows are read (`h[-1]`, `h[-2:]`): `keep = "last"` with n rows, and the consumers'
      offsets are changed. Where neither the number of initial rows, nor the length, nor a check (which is
      then moved before the scan) says that there are n rows, at most 8 are kept, `padded`: zeros, which
      nobody reads, stand for rows that are missing.
    * The initial rows are not read (`h[1:]`): `keep = "steps"`. A slice that takes all of a result goes.
    * A slice of initial rows alone is taken from the initial value.
    * Only rows of the first iterations are read (`h[:10]`, `h[3]`): the scan runs fewer iterations. Not
      with a stop condition, which decides that number itself, or checks, which every iteration makes.

    Where offsets depend on anything else, all rows are kept.

    Options:
        reread: only look at scans of which lift-slices or scan-to-map have changed a reader since then.

    The gradient of a scan reads all rows, so this must not run before differentiation: a scan that is
    marked `differentiable` is refused.

    Source: PyTensor's `scan_save_mem` (`save_mem_new_scan`).
    """

    stage = "graph"
    reread: bool = False

    def run(self, module: ir.Module) -> None:
        found = scans(module.operation)
        for op in found:
            if "differentiable" in op.attributes:
                fail(
                    op,
                    "graphc-scan-save-mem drops rows that the gradient of this scan needs; "
                    "differentiate first, then remove the attribute 'differentiable'",
                )
        for op in found:
            if "reread" in op.attributes or not self.reread:
                self._treat(ScanView(op))
            if "reread" in op.attributes:
                del op.attributes["reread"]

    def _treat(self, view: ScanView) -> None:
        for trace in view.traces():
            flatten(trace)
        unknowns: Unknowns = {}
        self._add("reads of initial rows", use_initial_rows(view, unknowns))
        # Offsets are best understood as functions of the length they were written for: initial rows go before
        # the length changes, and what is left is looked at again.
        self._reduce(view, unknowns, initial_only=True)
        self._add("scans shortened", int(shorten(view)))
        self._reduce(view, unknowns)
        for trace in view.traces():
            if next(trace.results[0].uses, None) is None:
                trace.erase()

    def _reduce(self, view: ScanView, unknowns: Unknowns, initial_only: bool = False) -> None:
        for name in view.declarations():
            for event in Retention(view, name, unknowns).apply(initial_only):
                self.count(event)

    def _add(self, name: str, number: int) -> None:
        if number:
            self.count(name, number)
