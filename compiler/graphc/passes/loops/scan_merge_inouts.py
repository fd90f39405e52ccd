# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merges what is equal within a scan: states, outputs and the work of the body."""

from __future__ import annotations

from typing import Any

from graphc.ir.scan_view import MERGED, ScanView, name_of, scans, tap_of, writes_of
from graphc.passes.loops._numbering import Numbering
from graphc.passes.loops._parts import (
    kept_rows,
    merge_equal_traces,
    part_of_same,
    part_of_state,
    replace_traces,
)
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_runtime.record import record


@record()
class ScanMergeInouts(Pass):
    """Merges states, outputs, reads and operations of a body that are equal in every iteration.

    * States with the same initial rows, taps and writes are equal if they stay so under the assumption that
      they are. States are grouped that way, and groups are split until the body agrees (partition refinement,
      as in minimising an automaton).
    * Outputs that collect equal values are one. An output that collects the new or a previous row of a state
      that is kept is a part of what is kept of the state.
    * Equal operations, reads of sequences and states among them, are computed once.

    Where less is kept of one of two equal results, it becomes a slice of the other; nothing is kept only for
    this.

    Options:
        rounds: how often this is repeated at most; what is merged in one loop may make values of the loop
            around it, or inside it, equal.
        merged: only look at loops that scan-merge has made of two.

    Source: PyTensor's `scan_merge_inouts`; Hopcroft's partition refinement (1971), without its
    data structure, as bodies have few states.
    """

    stage = "graph"
    rounds: int = 8
    merged: bool = False

    def run(self, module: ir.Module) -> None:
        found = [op for op in scans(module.operation) if not self.merged or MERGED in op.attributes]
        for op in found if self.merged else ():
            del op.attributes[MERGED]
        for _ in range(self.rounds):
            before = sum(self.statistics.values())
            for op in found:
                self._merge(ScanView(op))
            if sum(self.statistics.values()) == before:
                break

    def _merge(self, view: ScanView) -> None:
        numbering = Numbering([view])
        self._merge_states(view, numbering)
        self._merge_outputs(view, numbering)
        self._merge_outputs_into_states(view, numbering)
        self._merge_operations(view, numbering)
        merged = merge_equal_traces(view)
        if merged:
            self.count("traces merged", merged)

    def _merge_states(self, view: Any, numbering: Numbering) -> None:
        groups: dict[int, list[object]] = {}
        for name, carry in view.carries().items():
            groups.setdefault(numbering.group(name), []).append(carry)
        for carries in groups.values():
            if len(carries) == 1:
                continue
            for carry, chosen in self._pairs(view, carries):
                for read in view.reads(name_of(carry)):
                    read.attributes["state"] = ir.StringAttr.get(name_of(chosen))
                carry.erase()
                self.count("states merged")

    def _merge_outputs(self, view: Any, numbering: Numbering) -> None:
        groups: dict[int, list[object]] = {}
        for collect in view.collects().values():
            groups.setdefault(numbering[collect.operands[0]], []).append(collect)
        for collects in groups.values():
            if len(collects) > 1:
                for collect, _ in self._pairs(view, collects):
                    collect.erase()
                    self.count("outputs merged")

    def _pairs(self, view: Any, equal: list[Any]) -> Any:
        """Yields (declaration, the one that takes its place), after the traces were replaced."""
        order = ("all", "steps", "last")

        def most_first(op: ir.Operation) -> tuple[bool, int, int]:
            keep, rows = kept_rows(op)
            return not view.traces(name_of(op)), order.index(keep), -rows

        chosen, *others = sorted(equal, key=most_first)
        for op in others:
            part = part_of_same(chosen, op)
            if part is None and view.traces(name_of(op)):
                continue
            if part is not None:
                replace_traces(view, name_of(op), name_of(chosen), part)
            yield op, chosen

    def _merge_outputs_into_states(self, view: ScanView, numbering: Numbering) -> None:
        rows: dict[int, list[tuple[Any, int]]] = {}
        kept = {
            name: carry
            for name, carry in view.carries().items()
            if writes_of(carry) == [0] and view.traces(name)
        }
        for carry in kept.values():
            rows.setdefault(numbering[carry.operands[1]], []).append((carry, 0))
        for read in view.reads():
            if read.block == view.block and name_of(read) in kept:
                tap = tap_of(read)
                rows.setdefault(numbering[read.results[0]], []).append((kept[name_of(read)], tap))
        for name, collect in view.collects().items():
            for carry, tap in rows.get(numbering[collect.operands[0]], ()):
                part = part_of_state(carry, collect, tap)
                if part is not None:
                    replace_traces(view, name, name_of(carry), part)
                    collect.erase()
                    self.count("outputs taken from states")
                    break

    def _merge_operations(self, view: ScanView, numbering: Numbering) -> None:
        first: dict[int, Any] = {}
        for op in view.work():
            if len(op.results) != 1 or raises(op):
                continue
            result = op.results[0]
            other = first.setdefault(numbering[result], result)
            if other != result:
                result.replace_all_uses_with(other)
                op.erase()
                self.count("operations merged")
