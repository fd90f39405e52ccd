# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along rows."""

from __future__ import annotations

from graphc.passes.gpu._calls import calls_of
from graphc.passes.gpu._sorting import SortKernels
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuSort(Pass):
    """Makes kernels of calls that sort rows, or that give the positions which do.

    Numbers become unsigned integers in the same order, with NaN last. Rows of up to `tile` elements are
    sorted in shared memory, by one block each, with Batcher's bitonic network. Longer ones are sorted in
    tiles, which are merged in passes over memory, twice as long each time: a thread finds by bisection how
    many elements of the other run come before its own, and so where it belongs. Positions are compared where
    keys are equal, so that equal elements stay in their order. Of the kernels only those are launched that a
    row's length asks for. Complex numbers are left to others.

    Source: K. Batcher, "Sorting networks and their applications" (1968); for merges by ranks, N. Satish et
    al., "Designing efficient sorting algorithms for manycore GPUs" (2009).

    Attributes:
        tile: elements that a block sorts, a power of 2; half as many for positions of numbers of 64 bits.
    """

    tile: int = 4096

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, ("sort", "argsort")):
            if call.dtypes[0].kind == "c":
                continue
            positions = call.kernel.name == "argsort"
            source, result = call.buffers[:2]
            SortKernels(call.op, source, result, call.dtypes[0], self.tile, positions=positions).lower()
            call.erase()
            self.count("calls")
