# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intermediate arrays are computed again where holding them would take more memory than a budget."""

from __future__ import annotations

from graphc.ir.diagnostics import fail
from graphc.ir.donations import offered
from graphc.ir.locations import node_of
from graphc.ir.recomputed import Array, Recomputed, attach
from graphc.ir.scan_view import scans
from graphc.ir.walk import functions, symbol_of
from graphc.lowering.donation import Donations
from graphc.lowering.scan import declared_sizes
from graphc.lowering.units import SCHEDULED, Units
from graphc.passes.graph.memory._recipes import Plan
from graphc.passes.graph.memory._rewrite import rewrite
from graphc.passes.graph.memory._search import search
from graphc.passes.graph.memory._steps import Program
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class Rematerialise(Pass):
    """Computes arrays again at their later readers, where a block would hold more memory than the budget.

    Looked at is the block of `@main`, in the order in which its units (clusters of `graphc-fusion`, and other
    operations) would be lowered. That order is made the order of the text, and the attribute
    `graphc.scheduled` of the function keeps it.

    * At the step with the most bytes in use, an array is chosen that was computed before and is read again
      later. Elementwise operations, reductions and matrix products can be computed again; what they read is
      there at that time (arguments, literals, results, arrays that are read later still), or is computed
      again as well. What loops, updates and other operations read may be overwritten, and is not relied on.
    * An elementwise chain is computed in the loop that reads it, and takes no memory; anything else in a unit
      of its own, right before its first reader. Readers after that share it, or each computes it for itself.
    * The choice is that which removes the most bytes above a limit, summed over all steps, per operation
      that is done again. The limit is lowered from the peak to the budget in steps, so that only arrays at
      the highest places count.
    * Arrays of unknown size count as none. Nothing is changed where the peak is within the budget.

    Runs at the end of the graph stage: no later pass merges equal operations. `graphc.recomputed` in the
    module says what is done again.

    Options:
        budget: bytes of intermediate arrays.

    Source: Chen, Xu, Zhang and Guestrin, "Training deep nets with sublinear memory cost" (2016); Jain et al.,
    "Checkmate" (2020), for the cost of what is done again; XLA's `HloRematerialization`.
    """

    budget: int = 0

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        if self.budget < 0:
            fail(module.operation, f"the budget is a number of bytes, but is {self.budget}")
        for function in functions(module):
            if symbol_of(function) == "main":
                self._in_function(module, function)

    def _in_function(self, module: ir.Module, function: ir.Operation) -> None:
        block = function.regions[0].blocks[0]
        program = _program(module, function, block)
        plan = search(program, self.budget)
        self.count("arrays of unknown size", program.unknown)
        arrays, flops = _described(program, plan), 0
        if plan.again:
            flops = rewrite(program, plan, block)
            function.attributes[SCHEDULED] = ir.UnitAttr.get()
            self.count("arrays computed again", len(plan.again))
        found = Recomputed(unknown=program.unknown, peak=plan.memory.peak, flops=flops, arrays=arrays)
        attach(module, found)


def _program(module: ir.Module, function: ir.Operation, block: ir.Block) -> Program:
    extra = {
        op.results[0]: [size for row in declared_sizes(op).values() for size in row] for op in scans(function)
    }
    after = Donations.of_module(module, function).after
    results = list(block.operations[-1].operands)
    lent = [block.arguments[donation.argument] for donation in offered(module)]
    return Program(Units(block, extra, after).order(results), results, lent)


def _described(program: Program, plan: Plan) -> list[Array]:
    """What is computed again: by array, how often and with how many flops."""
    found: dict[int, list[int]] = {}
    for array, flops in plan.again:
        found.setdefault(array, []).append(flops)
    return [
        Array(
            node=node_of(program.arrays[array].owner.operation),
            bytes=program.sizes[array],
            times=len(flops),
            flops=sum(flops),
        )
        for array, flops in sorted(found.items())
    ]
