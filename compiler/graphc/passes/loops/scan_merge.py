# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fuses scans that can run in one loop."""

from __future__ import annotations

from collections.abc import Iterator

from graphc.ir.dims import DimKeys
from graphc.ir.scan_view import MERGED, SCAN, ScanView, scans
from graphc.ir.walk import functions, walk
from graphc.passes.loops._fuse import Fusion, resolve_sizes
from graphc.passes.loops._length import Length
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class ScanMerge(Pass):
    """Makes one loop of two scans of a block that run the same number of steps in the same direction.

    * Siblings do not depend on each other. Either none has a stop condition, or both have the same, computed
      from equal states (found as in scan-merge-inouts).
    * A consumer may read rows of a producer that the same iteration computes, or that are still in the window
      of the producer's state. It then takes them from the body instead of from the trace, which nobody may
      need to store any more.

    Numbers of steps are compared as functions of the producer's: a loop over `hs[1:]` runs as often as the
    one that made `hs`. Names that clash get a number. Work that both bodies have in common is left to cse and
    scan-merge-inouts, which finds the loop by its attribute `merged`.

    Options:
        max-operations: bodies that have more operations together are not fused: the loop would run out of
            registers, and take long to compile.

    Source: PyTensor's `ScanMerge`, which fuses siblings only; loop fusion (Kennedy and McKinley, 1993).
    """

    stage = "graph"
    max_operations: int = 300

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            while self._merge_once(function):
                pass

    def _merge_once(self, function: ir.Operation) -> bool:
        """Fuses the first pair that can be; says whether there was one."""
        found = list(reversed(scans(function)))
        blocks = {op.block for op in found}
        if len(blocks) == len(found):
            return False
        operations = walk(function)
        resolve_sizes(operations)
        keys = DimKeys({result: op for op in walk(function) for result in op.results})
        lengths: dict[ir.Operation, Length] = {}
        for block in dict.fromkeys(op.block for op in found):
            for first, second, between in self._pairs(block):
                length = lengths.get(first.op)
                if length is None:
                    length = lengths[first.op] = Length(first)
                fusion = Fusion(first, second, between, keys, length)
                if fusion.is_possible():
                    rows = fusion.apply()
                    first.op.attributes[MERGED] = ir.UnitAttr.get()
                    self.count("consumers merged" if rows else "siblings merged")
                    if rows:
                        self.count("rows passed on", rows)
                    if fusion.checks_removed:
                        self.count("checks removed", fusion.checks_removed)
                    return True
        return False

    def _pairs(self, block: ir.Block) -> Iterator[tuple[ScanView, ScanView, list[ir.Operation]]]:
        """Pairs of scans that run alike, with the operations between them; neighbours first."""
        operations = [op.operation for op in block.operations]
        places = [position for position, op in enumerate(operations) if op.name == SCAN]
        for later, place in enumerate(places):
            second = ScanView(operations[place])
            for other in reversed(places[:later]):
                first = ScanView(operations[other])
                if self._alike(first, second):
                    yield first, second, operations[other + 1 : place]

    def _alike(self, first: ScanView, second: ScanView) -> bool:
        """Whether direction, kind and size do not rule a pair out."""
        attributes = [
            {name: view.op.attributes[name] for name in view.op.attributes if name not in ("name", MERGED)}
            for view in (first, second)
        ]
        if attributes[0] != attributes[1] or (first.stop is None) != (second.stop is None):
            return False
        return len(first.operations()) + len(second.operations()) <= self.max_operations
