# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the states whose rows may be stored where their initial rows are."""

from __future__ import annotations

from graphc.ir.ownership import owns_memory
from graphc.ir.scan_view import ScanView, scans
from graphc.passes import Pass
from graphc_dialects._mlir import ir


class ScanInplace(Pass):
    """Marks a `scan_carry` with `inplace` if nothing but this state needs its initial rows.

    The lowering may then compute the state in the memory of the initial rows instead of copying them into
    buffers of its own. The initial rows qualify if they are

    * computed by an operation of the block that the scan is in (so afresh whenever the scan runs), possibly
      seen through views that leave every element in place: inserted or dropped axes of size 1, `reshape`,
      `specify_shape`, `tensor.cast`;
    * not an argument, a literal, a slice, a broadcast or a row of another array: that memory belongs to
      others, or holds an element in several places;
    * used once, by this state: not returned, not read in the body or after the scan, not the start of a
      second state. If they are a join, the same holds for what is joined, which may lie in them.

    A mark that does not hold any more is removed.

    Source: PyTensor's `ScanInplaceOptimizer`.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            for carry in ScanView(op).carries().values():
                if owns_memory(carry.operands[0], op.block):
                    if "inplace" not in carry.attributes:
                        carry.attributes["inplace"] = ir.UnitAttr.get()
                        self.count("states in place")
                elif "inplace" in carry.attributes:
                    del carry.attributes["inplace"]
                    self.count("marks removed")
