# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the host, of which each step asks for the same."""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.walk import walk
from graphc.passes.gpu import _step_kernel as kernels
from graphc.passes.gpu._loops import is_poll, polls_of, replace_loops
from graphc.passes.gpu._step_values import StepValues, is_pure
from graphc.passes.manager.base import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Division by what may be 0 stays in the loop, which may have no steps.
_DIVISIONS = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split()
)


@record()
class GpuSteps(Pass):
    """Moves what depends on the step of a loop from the host to the kernels that the loop launches.

    Kernels then read the number of the step from an array of the device, and find rows, and states that take
    turns, themselves; a kernel of one thread counts at the end of a step. Sizes and temporary arrays are
    computed and allocated before the loop. So each step asks for the same launches with the same arguments,
    and can be captured once, and replayed. What comes after the loop computes the last states from the number
    of steps.

    Loops of which the host reads values, calls functions, or asks for grids that differ from step to step,
    are left as they are.
    """

    stage = "buffer"

    def run(self, module: ir.Module) -> None:
        polls = polls_of(module)

        def replace(op: ir.Operation) -> bool:
            values = StepValues(op, polls)
            values.fix_sizes()
            _hoist(StepValues(op, polls))
            values = StepValues(op, polls)
            if not any(inner.name == "gpu.launch_func" for inner in values.inside):
                return False
            if not values.are_computable() or _allocates(values) or not kernels.are_own(module, values):
                return False
            for inner in walk(op):
                if is_poll(inner, polls):
                    inner.erase()
            _lower(module, values)
            return True

        self.count("loops", replace_loops(module, replace))


def _allocates(values: StepValues) -> bool:
    return any(inner.name == "memref.alloc" for inner in values.inside)


def _hoist(values: StepValues) -> None:
    """Moves arithmetic, views and temporary arrays that are the same in each step out of the loop."""
    inside = set(values.inside)

    def is_outside(value: ir.Value) -> bool:
        if isinstance(value.owner, ir.Block):
            owner = value.owner.owner.operation
            return owner != values.op and owner not in inside
        return value.owner.operation not in inside

    for inner in values.inside:
        if is_pure(inner) or (inner.name == "memref.alloc" and not _is_handed_on(inner.results[0])):
            # A loop without steps computes nothing; it allocates what is freed again.
            is_safe = inner.name not in _DIVISIONS or _is_not_zero(inner.operands[1])
            if is_safe and all(map(is_outside, inner.operands)):
                inner.move_before(values.op)
                inside.remove(inner)


def _is_handed_on(array: ir.Value) -> bool:
    """Whether a loop or a branch passes an array on: the next step reads it, and writes another one."""
    users = [use.owner.operation for use in array.uses]
    views = [result for user in users if is_pure(user) for result in user.results]
    return any(user.name in ("scf.yield", "scf.condition") for user in users) or any(
        map(_is_handed_on, views)
    )


def _is_not_zero(value: ir.Value) -> bool:
    number = build.constant_value(value)
    if number is not None or isinstance(value.owner, ir.Block):
        return number not in (None, 0)
    owner = value.owner
    if owner.name == "arith.select":
        return _is_not_zero(owner.operands[1]) and _is_not_zero(owner.operands[2])
    if owner.name == "arith.maxsi":
        return any((build.constant_value(x) or 0) > 0 for x in owner.operands)
    return False


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
            op.results[k].replace_all_uses_with(values.carried_at(k, _count(values), lambda x: x))
        _without_states(values)


def _count(values: StepValues) -> ir.Value:
    """How many steps there are."""
    span = build.index_op("subi", values.upper, values.lower)
    count = build.index_op("ceildivsi", span, values.step)
    return build.index_op("maxsi", count, build.const_index(0))


def _without_states(values: StepValues) -> None:
    """The same loop, with nothing carried."""
    op = values.op
    made = ir.Operation.create("scf.for", operands=list(op.operands)[:3], regions=1)
    block = ir.Block.create_at_start(made.regions[0], [build.index_type()])
    values.index.replace_all_uses_with(block.arguments[0])
    for state, initial in zip(values.carried, values.initial, strict=True):
        # Only views that nothing uses any more.
        state.replace_all_uses_with(initial)
    *body, end = [inner.operation for inner in op.regions[0].blocks[0].operations]
    end.erase()
    for inner in body:
        block.append(inner)
    for inner in reversed(body):
        if is_pure(inner) and not any(next(iter(result.uses), None) for result in inner.results):
            inner.erase()
    with ir.InsertionPoint(block):
        build.create("scf.yield", [], [])
    op.erase()
