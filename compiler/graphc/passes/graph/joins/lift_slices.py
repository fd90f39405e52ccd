# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes only the rows that are read of what is computed row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import Rewriter
from graphc.ir.views import TAKES_PART
from graphc.ir.walk import functions, walk
from graphc.passes.graph.joins._lift_cones import Lifting
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


class LiftSlices(Pass):
    """Takes slices before work instead of after it: `f(x)[-1]` becomes `f(x[-1:])[0]`.

    A slice goes up through operations whose result along the sliced axes needs the same part of their
    operands alone, together with all they are computed from in that way:

    * elementwise operations, casts, moved axes, broadcasts, slices, and joins along other axes;
    * reductions, `softmax` and `log_softmax` over other axes;
    * products: batches and rows from the left operand, batches and columns from the right one;
    * reshapes that join the first two axes, or divide the first one, such as work that left a loop has around
      its products.

    It goes where nothing else reads what would be computed in full, except slices of one row (at most four,
    each with work of its own then), and sizes. So rows of a loop that only such work reads are seen to be
    read in part by scan-save-mem, which must run later. Parts of views alone stay as they are.

    Shape checks of the operations are made for all of the operands; results of products may be rounded
    differently, as those of a product with other sizes.

    Source: PyTensor's `local_subtensor_lift`, `local_subtensor_of_dot`.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            if not any(op.name in TAKES_PART for op in walk(function)):
                continue
            for _ in range(_ROUNDS):
                lifting = Lifting()
                Rewriter(function, {name: [lifting.lift] for name in TAKES_PART}).run()
                if not lifting.lifted:
                    break
                self.count("slices lifted", lifting.lifted)
                self.count("operations after slices", lifting.operations)


# What one slice leaves unused is gone in the next round, so that others may follow.
_ROUNDS = 4
