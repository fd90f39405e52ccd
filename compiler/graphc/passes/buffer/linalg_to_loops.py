# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From bufferised linalg to loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.walk import functions, walk
from graphc.lowering.checked_gathers import merge_checked_gathers
from graphc.lowering.fills import lower_copy, lower_fill
from graphc.lowering.loops import LoopNest
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_LOWERED = ("linalg.generic", "linalg.fill", "memref.copy")


class LinalgToLoops(Pass):
    """Lowers `linalg.generic`, `linalg.fill` and strided `memref.copy` on buffers to `scf.for` nests.

    The nests are shaped for the vectoriser.

    Contiguous dimensions are collapsed, accumulators are kept in registers, loads are placed in the outermost
    loop that can hold them, and float sums are blocked (see graphc.lowering.loops for the rules). Unlike
    upstream's `convert-linalg-to-loops`, a reduction is not a load and a store per element.

    What is read at the elements of a vector of indices is read in the loop that finds the smallest and the
    largest of them, where they are in range; the check of these two follows.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        merged = sum(map(merge_checked_gathers, functions(module)))
        if merged:
            self.count("checked gathers", merged)
        found = [op for op in walk(module.operation) if op.name in _LOWERED]
        for op in found:
            if op.name == "linalg.fill":
                lower_fill(op)
            elif op.name == "memref.copy":
                lower_copy(op)
            else:
                LoopNest(op).lower()
        self.count("loop nests", len(found))
