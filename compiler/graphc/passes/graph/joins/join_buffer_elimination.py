# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is joined is computed in its slice of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.rewrite import Rewriter
from graphc.ir.views import JOINS, UPDATES_PART
from graphc.ir.walk import functions, walk
from graphc.passes.graph.joins._rules import JoinRules
from graphc.passes.graph.joins._write_joins import JoinWriter
from graphc.passes.manager.base import Pass
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

_JOINS = frozenset({*JOINS, *UPDATES_PART})


@record()
class JoinBufferElimination(Pass):
    """Allocates the result of a `join` once and lets every operand be computed in its slice of it.

    A join becomes `write_buffer` (the memory of the result), `write_split` (its disjoint slices along the
    axis), a `write` of each operand, and `write_join` (the tensor, when all has been written). The lowering
    computes a value that is written to a buffer right there; nothing is tested at run time.

    * Views between what computes an operand and the join (`dimshuffle`, `reshape`, so also ravel and
      expand_dims, `specify_shape`, `tensor.cast`) are absorbed: the slice is seen the other way round with
      `write_view`. A slice that is reshaped must be contiguous: no axis before the joined one is longer
      than 1.
    * *Eligible* is what is computed in the same block: by elementwise operations, reductions, products,
      gathers, updates, recurrences, scans (what is kept of a state or output), conditionals, and other joins.
      Arguments, literals and views are copied into their slice. A value that has a destination already (it
      occurs twice in a join, or in two joins) is copied the second time; what else reads a value reads the
      slice.
    * The lowering computes apart, and copies, what would be slow in a slice that is not made of rows (a
      transposed one, a column): matrix products, reductions, elementwise functions that are not cheap.
    * Nothing is rewritten with fewer eligible operands than the option asks for.

    Before that, joins are found and removed:

    * a chain of `update_slice` that sets every element, in blocks that can be separated by straight cuts,
      is a join of the blocks, whatever it started from; slices of sizes that are known at run time only are
      compared as sums of sizes. One that adds to every element once is the sum of what it started from and
      the join: of zeros, as in the gradient of a vector that was taken apart, the join;
    * a `slice` of a join that lies within one operand is a slice of the operand, or the operand itself, so
      that the parts of a split of a join are the operands;
    * a join of neighbouring slices of one array is a slice;
    * a sum along the joined axis is the sum of the operands' sums, and along other axes the join of their
      sums.

    Options:
        min-eligible: smallest number of eligible operands for which a join is rewritten; one is enough if it
            has been updated more than once.

    Source: PyTensor's pull request 2014 (WriteSplit and WriteJoin), and its rewrites `local_reduce_join` and
    `local_subtensor_of_join`.
    """

    stage = "graph"
    min_eligible: int = 2

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            if not any(op.name in _JOINS for op in walk(function)):
                continue
            simplifier = Rewriter(function, JoinRules().table())
            simplifier.run()
            writer = JoinWriter(self.min_eligible)
            Rewriter(function, {name: [writer.write] for name in JOINS}).run()
            for name, number in {**simplifier.counts, **writer.counts}.items():
                self.count(name.replace("_", " "), number)
