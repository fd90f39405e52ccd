# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes from scans what is not needed, and what is the same in every iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.scan_view import ScanView, scans
from graphc.ir.walk import functions, walk
from graphc.passes.loops._conditions import simplify_conditions
from graphc.passes.loops._liveness import Liveness
from graphc.passes.loops._uniform import UniformScan, replace_uniform_reads
from graphc.passes.loops._window import shrink
from graphc.passes.manager.base import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ScanRemoveConstantsAndUnusedInputs(Pass):
    """Drops states, outputs and reads nobody needs; replaces those that never change by their value.

    * What is needed is found backwards from the function's results, checks and stop conditions, through
      traces, states and inner loops together. A state that only feeds itself is not needed; upstream's
      canonicalize keeps it, because a declaration has no results.
    * The window of a state shrinks to the rows that are read; writes of older rows that nobody sees are
      dropped; a state that is not read and keeps its new rows only becomes an output.
    * A row of a sequence that repeats one row (`broadcast_to` along the first axis, a splat) is that row; a
      row of `iota` is computed.
    * A state that keeps its first row is that row: all states are assumed to, and those for which the body
      disproves it are given up until no assumption is wrong. A trace of such a state, and an output that is
      defined outside of the loop, is a broadcast.
    * A stop condition that is false is dropped; one that is true leaves at most one iteration. A plain loop's
      `scan_steps` is its bound.

    Options:
        rounds: how often the rules are repeated at most; each removal may allow another.

    Source: PyTensor's `remove_constants_and_unused_inputs_scan`; the optimistic assumption is that of sparse
    conditional constant propagation (Wegman and Zadeck, 1991).
    """

    stage = "graph"
    rounds: int = 8

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            for _ in range(self.rounds):
                found = scans(function)
                if not found or not self._round(function, found):
                    break

    def _round(self, function: ir.Operation, found: list[ir.Operation]) -> bool:
        """Applies every rule once to the scans of a function; says whether any did something."""
        before = sum(self.statistics.values())
        for op in found:
            self._add(simplify_conditions(ScanView(op)))
        self._add({"sequences replaced": replace_uniform_reads(walk(function))})
        for op in found:
            self._add(UniformScan(ScanView(op)).replace())
        self._add(Liveness(function).sweep())
        for op in scans(function):
            self._add(shrink(ScanView(op)))
        return sum(self.statistics.values()) > before

    def _add(self, counts: dict[str, int]) -> None:
        for name, number in counts.items():
            if number:
                self.count(name, number)
