# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the first row of an output say what size its rows have, where nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.scan_view import ScanView, scans
from graphc.passes.loops._first_row import specify_rows
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class ScanRowSizes(Pass):
    """Finds the sizes of rows that depend on the iteration, such as those of `x[i : i + k]` for an index i.

    The result of a scan is allocated before its iterations run, so the size of a row has to be known outside.
    Where it depends on a row of a sequence, a state, or a loop in the body, the first iteration decides:

    * A scan of at most one iteration, before it, computes the sizes in a copy of the body (of which only what
      the sizes need stays). Without any iteration the sizes are 0.
    * A check in the body sees to it that every row has these sizes (ValueError), and `specify_shape` says so
      to all later passes.

    Inner scans come first, so that sizes of their traces are known in the bodies around them.

    Source: the first iteration of PyTensor's `Scan.perform`, which allocates its outputs.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            self.count("sizes of rows", specify_rows(ScanView(op)))
