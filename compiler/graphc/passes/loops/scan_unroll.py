# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns short scans into straight-line code."""

from __future__ import annotations

from graphc.ir.affine import key_of
from graphc.ir.diagnostics import fail
from graphc.ir.scan_view import ScanView, scans
from graphc.ir.walk import walk
from graphc.passes.loops._iterations import unroll
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class ScanUnroll(Pass):
    """Replaces a scan whose number of steps is a small constant by its iterations, one after the other.

    Without the loop, each iteration is simplified and fused with its neighbours and with what is around it;
    rows of sequences and states are at known positions. Results become a `join` of the rows that are kept;
    with 0 steps they are the initial rows, or empty. Checks in the body are kept in each iteration.

    * A scan is unrolled if it has at most `max-steps` steps and its iterations together at most
      `max-operations` operations: up to there the code is about as long as that of a loop with its buffers
      and tests, and compiling it does not take longer.
    * The attribute `unroll = u : i64` asks for more: with at most u steps the scan is unrolled, however
      large. With more steps the attribute stays, as a hint for the lowering.
    * A scan with a stop condition is unrolled if its bound is 0 or 1, as it then runs that many steps.
    * Inner scans come first; those that stay are copied into each iteration.
    * Where the sizes of a row do not follow from its type, a check per iteration sees to it that a state
      keeps the shape it starts with.

    Source: `unroll` of `jax.lax.scan`, and Theano's special case of scans of one step.

    Attributes:
        max-steps: unroll up to this number of steps.
        max-operations: unroll if there are no more operations than this in all iterations.
    """

    stage = "graph"
    max_steps: int = 4
    max_operations: int = 64

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            steps = self._wanted(ScanView(op))
            if steps is not None and unroll(ScanView(op), steps):
                self.count("scans unrolled")
                self.count("iterations", steps)

    def _wanted(self, view: ScanView) -> int | None:
        """The number of steps, if the scan is to be unrolled."""
        asked = view.op.attributes.get("unroll")
        if asked is not None and not isinstance(asked, ir.IntegerAttr):
            fail(view.op, f"'unroll' must be a number of steps such as 4 : i64, but is {asked}")
        steps = key_of(view.steps)
        if not isinstance(steps, int) or steps < 0 or (view.stop is not None and steps > 1):
            return None
        if asked is not None and steps <= asked.value:
            return steps
        if steps > self.max_steps or steps * len(walk(view.op)) > self.max_operations:
            return None
        return steps
