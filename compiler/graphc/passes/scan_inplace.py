# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the states whose rows may be stored where their initial rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphc.passes._base import Pass

# Views that leave elements where they are.
_VIEWS = frozenset({"graphc.dimshuffle", "graphc.reshape", "graphc.specify_shape", "tensor.cast"})
# Results that may be the memory of something else: an argument, a literal, a row of another array.
_BORROWED = frozenset(
    {"graphc.slice", "graphc.broadcast_to", "graphc.scan_seq", "graphc.scan_prev", "graphc.constant"}
)


@dataclass
class ScanInplace(Pass):
    """Marks a `scan_carry` with `inplace` if nothing but this state needs its initial rows.

    The lowering may then compute the state in the memory of the initial rows instead of copying them into
    buffers of its own. The initial rows qualify if they are

    * computed by an operation of the block that the scan is in (so afresh whenever the scan runs), possibly
      seen through views that leave every element in place: inserted or dropped axes of size 1, `reshape`,
      `specify_shape`, `tensor.cast`;
    * not an argument, a literal, a slice, a broadcast or a row of another array: that memory belongs to
      others, or holds an element in several places;
    * used once, by this state: not returned, not read in the body or behind the scan, not the start of a
      second state.

    A mark that does not hold any more is removed.

    Source: PyTensor's `ScanInplaceOptimizer`.
    """

    stage = "graph"

    def run(self, module: Any) -> None:
        from graphc.passes._scan import ScanView, scans
        from graphc_dialects._mlir import ir

        for op in scans(module.operation):
            for carry in ScanView(op).carries().values():
                if owns_memory(carry.operands[0], op.block):
                    if "inplace" not in carry.attributes:
                        carry.attributes["inplace"] = ir.UnitAttr.get()
                        self.count("states in place")
                elif "inplace" in carry.attributes:
                    del carry.attributes["inplace"]
                    self.count("marks removed")


def owns_memory(value: Any, block: Any) -> bool:
    """Whether a tensor was computed in the block and its only use is the one it is asked for."""
    from graphc_dialects._mlir import ir

    while True:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.block != block or not _is_used_once(value):
            return False
        op = owner.operation
        if op.name not in _VIEWS:
            return op.name.startswith("graphc.") and op.name not in _BORROWED and not _is_shared_trace(op)
        if op.name == "graphc.dimshuffle" and not _keeps_order(op):
            return False
        value = op.operands[0]


def _is_shared_trace(op: Any) -> bool:
    """Whether an operation is one of several that take the same result of a scan."""
    from graphc.passes._scan import ScanView, name_of

    return op.name == "graphc.scan_trace" and len(ScanView(op.operands[0].owner).traces(name_of(op))) > 1


def _is_used_once(value: Any) -> bool:
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def _keeps_order(dimshuffle: Any) -> bool:
    axes = [axis for axis in dimshuffle.attributes["order"] if axis >= 0]
    return axes == sorted(axes)
