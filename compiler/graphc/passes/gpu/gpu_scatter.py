# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes at positions that an array says."""

from __future__ import annotations

from graphc.passes.gpu._loops import polls_of, replace_loops
from graphc.passes.gpu._scatter import ScatterKernels, as_scatter
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuScatter(Pass):
    """Makes kernels of loops that set or increase elements at positions which are read from an array.

    Positions may repeat, and then act in order: of several numbers that are set the last one stays, and sums
    are rounded as they are added up one after the other. So the positions are sorted, which keeps equal ones
    in their order, and of those that are equal one thread does all writes: results have the bits of a loop on
    one thread. Rows are written by as many threads as they have elements, side by side. A thread finds out by
    bisection how many writes it has to do. Where most positions are equal, few threads work.

    Attributes:
        threads: threads of a block.
        tile: positions that a block sorts, a power of 2.
    """

    threads: int = 128
    tile: int = 4096

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            scatter = as_scatter(op, polls)
            if scatter is None:
                return False
            ScatterKernels(scatter, self.threads, self.tile).lower()
            op.erase()
            return True

        self.count("loops", replace_loops(module, replace))
