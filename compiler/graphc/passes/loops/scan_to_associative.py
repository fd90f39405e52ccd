# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running sums and linear recurrences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.scan_view import ScanView, scans
from graphc.passes.loops._recurrences import Recognition
from graphc.passes.loops._stack import drop_if_empty
from graphc.passes.manager.base import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


@record()
class ScanToAssociative(Pass):
    """Replaces states that are running sums (products, extremes) or linear recurrences by one operation each.

    | step of the state | becomes |
    |---|---|
    | `acc = acc (+) g`: a sum, difference, product, maximum, minimum, "and" or "or" | a running operation |
    | `h = a * h + b`, with signs and operands in any order | a linear recurrence |

    g, a and b depend on sequences, on what is outside, and on states that were recognised before. Every use
    of a recognised state in the body reads rows of the operation's result. The loop is left without states,
    so that scan-to-map can do the rest of its work on whole stacks.

    A recognised loop must not become slower (cycles of a current x86-64 core, see
    graphc.lowering.recurrences), so a scan is changed only if

    * all of its states are recognised: a loop that stays hides the latency of a running sum by its
      other work;
    * one of them gains. For rows of one element that is a running float sum (blocks: 1.25 cycles a step
      instead of 4) or a float extreme (NaN wins, 8 cycles latency; blocks of 4). Integers gain nothing over
      the loop, whose chain has a latency of 1, and neither do linear recurrences (one multiply-add, 4
      cycles) and float products, unless `reassociate` allows blocks of them. Rows of 2 to 8 elements, of
      static size, always gain: they stay in registers instead of being stored and loaded again in each
      step. Larger rows gain nothing: the loop over a row is the same;
    * g, a and b are elementwise work on rows of sequences or reductions of such rows; cheap ones are
      computed where they are read, others are vectorised first;
    * the scan keeps a state in full, or an output of at least its size, as the rows of all steps are stored.

    Float results differ by the order of summation within 8 steps, with an error bound an eighth of the
    loop's, and where sums of 8 neighbours overflow. Several terms `acc + g + f` are added as `acc + (g +
    f)`. Everything else is exact. Scans with a stop condition are left alone.

    Options:
        reassociate: blocks also for products and linear recurrences: powers of `a` and products of
            neighbours are made first, so that the rounding differs, and infinities do where these over- or
            underflow.

    Source: G. Blelloch, "Prefix sums and their applications" (1990); `jax.lax.associative_scan`.
    """

    stage = "graph"
    reassociate: bool = False

    def run(self, module: ir.Module) -> None:
        for op in scans(module.operation):
            view = ScanView(op)
            if view.stop is not None or not view.carries():
                continue
            recognition = Recognition(view, self.reassociate)
            if not recognition.pays() or not recognition.apply():
                continue
            for kind, number in recognition.counts.items():
                self.count(kind, number)
            if drop_if_empty(view):
                self.count("scans removed")
