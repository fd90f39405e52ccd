# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops whose states are the same elementwise work at each step."""

from __future__ import annotations

from graphc.ir.walk import functions, walk
from graphc.passes.gpu._loops import polls_of, replace_loops
from graphc.passes.gpu._scan import ScanKernel, as_scan
from graphc.passes.gpu._simple import NESTS, as_generic
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuScan(Pass):
    """Makes one kernel of a loop, in which each thread runs all iterations for its own elements.

    That is so where everything in the body is elementwise over one shape, such as that of a batch of chains,
    and no element of a state is computed from other elements. States stay in registers from step to step;
    rows that are kept are written as they are computed. Elements of arrays that the loop does not write are
    read up to 16 steps ahead, so that a step does not wait for memory. Without it, each step would be a
    launch. Arrays that live for one iteration disappear. The loop's polls for interrupts go: a kernel runs to
    its end.

    Attributes:
        threads: threads of a block; few, so that small batches use many multiprocessors.
    """

    threads: int = 64

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            for inner in [inner for inner in walk(op) if inner.name in NESTS]:
                as_generic(inner)
            scan = as_scan(op, polls)
            if scan is None:
                return False
            ScanKernel(scan, self.threads).lower()
            return True

        if any(op.name == "scf.for" for function in functions(module) for op in walk(function)):
            self.count("kernels", replace_loops(module, replace))
