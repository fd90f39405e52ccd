# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums, products and extremes, and linear recurrences."""

from __future__ import annotations

from graphc.passes.gpu._calls import calls_of
from graphc.passes.gpu._lines import CALLS, lies_along_rows
from graphc.passes.gpu._running_columns import ColumnKernels
from graphc.passes.gpu._running_rows import RowKernels
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuRunning(Pass):
    """Makes two kernels of each running sum, product or extreme and of each linear recurrence.

    The first one computes what each part of a line comes to, and is not launched where lines have one part;
    the second one combines the parts before its own, and writes the numbers. Where the elements of a line lie
    side by side, a block of threads has a part: it is read into shared memory in tiles, each thread combines
    4 or 8 neighbours, warps by shuffles, and the block through shared memory. Otherwise a thread has a part
    of a line, neighbouring threads neighbouring lines, and operands are read for 8 steps at a time. Parts are
    combined in order, and follow from sizes: equal calls give equal bits, and there are no atomics. 512 lines
    along memory, or 131,072 across, have one part each; those across are then computed step by step.

    Steps of a linear recurrence `h = a h + b` are combined as pairs: (a, b), then (a', b'), is
    (a a', a' b + b'). Rounding differs from that of single steps, and infinities do where products of `a`, or
    of what is multiplied, over- or underflow. A sum is the result of at most about n / 2048 + 30 additions
    one after the other instead of n.

    Source: G. Blelloch, "Prefix sums and their applications" (1990); S. Sengupta et al., "Scan primitives for
    GPU computing" (2007).

    Attributes:
        each: steps of a part along memory, at least.
    """

    each: int = 8192

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        for call in calls_of(module, CALLS):
            if lies_along_rows(call):
                RowKernels(call, self.each).lower()
            else:
                ColumnKernels(call).lower()
            call.erase()
            self.count("calls")
