# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over rows of a batch that have nothing to do with each other."""

from __future__ import annotations

from graphc.ir.walk import functions, walk
from graphc.passes.gpu._batch import as_batch_loop
from graphc.passes.gpu._batch_kernel import BatchKernel
from graphc.passes.gpu._loops import is_poll, polls_of, replace_loops
from graphc.passes.gpu._simple import NESTS, as_generic
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuBatch(Pass):
    """Makes one kernel of a loop whose body has reductions, such as the products of a recurrent network.

    That is so where all arrays that the loop writes have the batch as an axis, and nothing reads another row
    of them than its own: the first dimension of each nest is the batch. A block of threads runs all
    iterations for 4 rows, so that its threads wait for each other only, and not for the grid. The gradient
    of such a loop is one again; what it sums over the batch has become a product after the loop.

    Products keep the rows in shared memory, in parts of 256 elements; four groups of threads each have a
    quarter of the additions for all 4 rows, so that an element of the matrix is read once a block and
    iteration, and the parts are added up in order. A matrix that lies across is copied once before the loop.
    Elementwise work on a product's result is done by the thread that has the sum. Arrays that live for one
    iteration are taken once, or not at all. The loop's polls for interrupts go: a kernel runs to its end.

    Source: G. Diamos et al., "Persistent RNNs: stashing recurrent weights on-chip" (2016), for the loop
    within the kernel; there the weights stay in registers and the grid waits for each step.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            for inner in [inner for inner in walk(op) if inner.name in NESTS]:
                as_generic(inner)
            work = as_batch_loop(op, polls)
            if work is None:
                return False
            for inner in walk(op):
                if is_poll(inner, polls):
                    inner.erase()
            BatchKernel(work).lower()
            return True

        if any(op.name == "scf.for" for function in functions(module) for op in walk(function)):
            self.count("kernels", replace_loops(module, replace))
