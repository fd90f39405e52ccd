# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the host with nothing in a step that need not be there."""

from __future__ import annotations

from graphc.ir import build
from graphc.passes.gpu._step_values import StepValues, is_pure
from graphc_dialects._mlir import ir

# Division by what may be 0 stays in the loop, which may have no steps.
_DIVISIONS = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split()
)


def prepared(op: ir.Operation, polls: frozenset[str]) -> StepValues:
    """The values of a loop, out of which everything has been moved that is the same in all steps."""
    values = StepValues(op, polls)
    values.fix_sizes()
    _hoist(StepValues(op, polls))
    return StepValues(op, polls)


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


def without_states(values: StepValues) -> None:
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
