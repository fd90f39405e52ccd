# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the host, of which each step asks for the same."""

from __future__ import annotations

from graphc.ir.walk import walk
from graphc.passes.gpu import _step_kernel as kernels
from graphc.passes.gpu._loops import is_poll, polls_of, replace_loops
from graphc.passes.gpu._step_values import StepValues
from graphc.passes.gpu._until import prepared, replace_until, without_states
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record


@record()
class GpuSteps(Pass):
    """Moves what depends on the step of a loop from the host to the kernels that the loop launches.

    Kernels then read the number of the step from an array of the device, and find rows, and states that take
    turns, themselves; a kernel of one thread counts at the end of a step. Sizes and temporary arrays are
    computed and allocated before the loop. So each step asks for the same launches with the same arguments,
    and can be captured once, and replayed. What comes after the loop computes the last states from the number
    of steps.

    Of loops that end early, a kernel computes at the end of a step whether there is another one; where there
    is none, kernels do nothing. The host launches 4 steps, then as many as there have been, at most 64, and
    reads that number.

    Loops of which the host reads other values, calls functions, or asks for grids that differ from step to
    step, are left as they are.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            if op.name == "scf.while":
                return replace_until(module, op, polls)
            values = prepared(op, polls)
            if not values.are_computable() or not kernels.are_own(module, values):
                return False
            for inner in walk(op):
                if is_poll(inner, polls):
                    inner.erase()
            _lower(module, values)
            return True

        self.count("loops", replace_loops(module, replace, ("scf.for", "scf.while")))


def _lower(module: ir.Module, values: StepValues) -> None:
    op = values.op
    launches = [inner for inner in values.inside if inner.name == "gpu.launch_func"]
    varying = [x for x in launches if any(map(values.varies, x.operands))]
    if varying:
        *_, end = op.regions[0].blocks[0].operations
        counter = kernels.counter(op, end.operation)
        for launch in varying:
            kernels.rewrite(module, launch, values, counter)
    used = [k for k, result in enumerate(op.results) if next(iter(result.uses), None) is not None]
    with ir.InsertionPoint(op), op.location:
        for k in used:
            op.results[k].replace_all_uses_with(values.carried_at(k, values.count(), lambda x: x))
        without_states(values)
