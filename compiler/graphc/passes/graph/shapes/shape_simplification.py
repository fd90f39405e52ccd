# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes shapes from shapes instead of from values, and removes operations that change none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import apply_rules
from graphc.passes.graph.shapes._measured import check_measured
from graphc.passes.graph.shapes._rules import RULES
from graphc.passes.manager.base import Pass
from graphc_dialects.check import checks_in

if TYPE_CHECKING:
    from graphc.ir.rewrite import Rewriter
    from graphc_dialects._mlir import ir


class ShapeSimplification(Pass):
    """Resolves `tensor.dim` and removes reshapes, broadcasts, views and casts without effect.

    * The size of a graphc operation's result becomes the size of an operand, an index value or a constant,
      as the operation's `reify` says, repeatedly up to the function's arguments. An operation whose shape
      alone was asked for then has no uses and disappears; of what it relies on in sizes, checks stay (but of
      operations in loops and branches).
    * `tensor.extract` of `tensor.from_elements`, and `index_cast` of `index_cast`, give back the index.
    * A `graphc.check` whose condition is the constant true is removed.
    * `reshape`, `broadcast_to`, `specify_shape`, `dimshuffle` and `slice` that return their operand are
      removed. Sizes count as equal only where that is certain, so no run-time check is lost.
    * `second(x, y)` becomes a broadcast of y, which needs only the sizes of x.

    Source: PyTensor's `ShapeFeature` and `local_useless_*` rewrites.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for rewriter in apply_rules(module, RULES, self.count, erase=False):
            checks = check_measured(rewriter)
            rewriter.erase_unused()
            if checks:
                self.count("checks of what was measured", checks)
            self._remove_true_checks(rewriter)

    def _remove_true_checks(self, rewriter: Rewriter) -> None:
        for op in checks_in(rewriter.function):
            if rewriter.constant(op.operands[0]) in (True, -1, 1):
                op.erase()
                self.count("checks removed")
