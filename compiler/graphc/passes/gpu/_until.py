# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that end when the device says so.

Loops of the host with nothing in a step that need not be there.
"""

from __future__ import annotations

from graphc.ir import build
from graphc.ir.copies import copy_with
from graphc.ir.value import as_index, converted, larger, literal, smaller
from graphc.passes.gpu import _step_kernel as kernels
from graphc.passes.gpu._kernel import Kernel
from graphc.passes.gpu._loops import is_poll
from graphc.passes.gpu._step_values import StepValues, is_pure
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# Division by what may be 0 stays in the loop, which may have no steps.
_DIVISIONS = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split()
)


def prepared(op: ir.Operation, polls: frozenset[str]) -> StepValues:
    """The values of a loop, out of which everything has been moved that is the same in all steps."""
    StepValues(op, polls).fix_sizes()
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
    """True if a loop or a branch passes an array on: the next step reads it, and writes another one."""
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


# Steps that are launched before the host asks whether there is another one: the first time, and at most.
_FIRST, _MOST = 4, 64


@record(frozen=True)
class _Until:
    """A loop over an index, of which a step says whether there is another one.

    Attributes:
        op: the `scf.while`.
        lower, upper, step: of the index.
        index: the argument of the body that is the index.
        states: the numbers of the other arguments of the body.
        goes_on: whether there is another step.
        work: what computes that, in the body.
    """

    op: ir.Operation
    lower: ir.Value
    upper: ir.Value
    step: ir.Value
    index: int
    states: tuple[int, ...]
    goes_on: ir.Value
    work: tuple[ir.Operation, ...]


def replace_until(module: ir.Module, op: ir.Operation, polls: frozenset[str]) -> bool:
    """Replaces an `scf.while` by a loop of loops of launches; returns whether that is possible."""
    until = _as_until(op)
    if until is None:
        return False
    before = set(_siblings(op))
    new: dict[ir.Value, ir.Value] = {}
    loop = _copied(until, new, polls)
    values = prepared(loop, polls)
    given = [new.get(x, x) for work in until.work for x in work.operands]
    is_possible = values.are_computable() and not any(map(values.varies, given))
    if not is_possible or not kernels.are_own(module, values, times=2):
        loop.erase()
        for moved in reversed([x for x in _siblings(op) if x not in before]):
            if not any(next(iter(result.uses), None) for result in moved.results):
                moved.erase()
        return False
    _lower(module, until, values, new)
    return True


def _siblings(op: ir.Operation) -> list[ir.Operation]:
    return [other.operation for other in op.block.operations]


def _as_until(op: ir.Operation) -> _Until | None:
    """The loop, if it goes on while an index is below a bound and a condition of the last step holds."""
    before, after = (region.blocks[0] for region in op.regions)
    *checks, condition = [inner.operation for inner in before.operations]
    if [inner.name for inner in checks] != ["arith.cmpi", "arith.andi"]:
        return None
    below, both = checks
    flags = [x for x in both.operands if x != below.results[0]]
    if condition.operands[0] != both.results[0] or len(flags) != 1 or build.predicate_of(below) != 2:
        return None
    given: list[ir.Value] = list(before.arguments)
    passed = list(condition.operands)[1:]
    at, upper = below.operands
    if at not in passed or flags[0] not in given or flags[0] in passed or not set(passed) <= set(given):
        return None
    if (
        not isinstance(at.owner, ir.Block)
        or upper in given
        or not _is_true(op.operands[given.index(flags[0])])
    ):
        return None
    *body, end = [inner.operation for inner in after.operations]
    step = _step(end.operands[given.index(at)], after.arguments[passed.index(at)])
    goes_on = end.operands[given.index(flags[0])]
    work = _work(goes_on, body)
    states = tuple(k for k in range(len(passed)) if passed[k] != at)
    # What is not passed to the body would be a state that only a condition reads.
    if step is None or work is None or len(passed) != len(given) - 1:
        return None
    lower = op.operands[given.index(at)]
    return _Until(op, lower, upper, step, passed.index(at), states, goes_on, work)


def _is_true(value: ir.Value) -> bool:
    return (
        not isinstance(value.owner, ir.Block)
        and value.owner.name == "arith.constant"
        and bool(ir.IntegerAttr(value.owner.attributes["value"]).value)
    )


def _step(after: ir.Value, index: ir.Value) -> ir.Value | None:
    """Increment of an index, if it is a constant above 0."""
    if isinstance(after.owner, ir.Block) or after.owner.name != "arith.addi":
        return None
    others = [x for x in after.owner.operands if x != index]
    return others[0] if len(others) == 1 and (build.constant_value(others[0]) or 0) > 0 else None


def _work(value: ir.Value, body: list[ir.Operation]) -> tuple[ir.Operation, ...] | None:
    """Operations that compute a condition from elements of arrays, if nothing else in the body needs them."""
    found: set[ir.Operation] = set()
    open_ = [value]
    while open_:
        owner = open_.pop().owner
        if isinstance(owner, ir.Block) or owner.operation not in body or owner.operation in found:
            continue
        if owner.name != "memref.load" and not owner.name.startswith("arith."):
            return None
        found.add(owner.operation)
        # Which array an element is of is known to the host.
        open_ += list(owner.operands)[1:] if owner.name == "memref.load" else list(owner.operands)
    if not any(op.name == "memref.load" for op in found):
        return None
    if not all(_keeps(op, body) for op in found if op.name == "memref.load"):
        return None
    users = [use.owner.operation for op in found for result in op.results for use in result.uses]
    is_private = all(user in found or user.name == "scf.yield" for user in users)
    return tuple(op for op in body if op in found) if is_private else None


def _keeps(load: ir.Operation, body: list[ir.Operation]) -> bool:
    """True if an element is the same at the end of the body."""
    rest = body[body.index(load) :]
    if not any(op.name == "gpu.launch_func" for op in rest):
        return True
    array = load.operands[0]
    is_own = not isinstance(array.owner, ir.Block) and array.owner.name == "memref.alloc"
    return is_own and all(use.owner.operation not in rest[1:] for use in array.uses)


def _copied(until: _Until, new: dict[ir.Value, ir.Value], polls: frozenset[str]) -> ir.Operation:
    """The steps as an `scf.for` before the loop; what says whether there is another one is left out.

    Args:
        until: the loop.
        new: gains the copies of values.
        polls: functions that ask whether the user wants to stop, which are left out, too.
    """
    op = until.op
    before, after = (region.blocks[0] for region in op.regions)
    given: list[ir.Value] = list(before.arguments)
    *_, condition = before.operations
    *body, end = [inner.operation for inner in after.operations]
    passed = list(condition.operation.operands)[1:]
    initial = [op.operands[given.index(passed[k])] for k in until.states]
    with ir.InsertionPoint(op), op.location:
        loop = ir.Operation.create(
            "scf.for",
            operands=[until.lower, until.upper, until.step, *initial],
            results=[value.type for value in initial],
            regions=1,
        )
    block = ir.Block.create_at_start(loop.regions[0], [build.index_type(), *(x.type for x in initial)])
    new[after.arguments[until.index]] = block.arguments[0]
    for place, k in enumerate(until.states):
        new[after.arguments[k]] = block.arguments[1 + place]
    with ir.InsertionPoint(block), op.location:
        for inner in body:
            if inner in until.work or is_poll(inner, polls):
                continue
            copy_with(inner, new)
        yields = [end.operands[given.index(passed[k])] for k in until.states]
        build.create("scf.yield", [], [new.get(x, x) for x in yields])
    return loop


def _lower(module: ir.Module, until: _Until, values: StepValues, new: dict[ir.Value, ir.Value]) -> None:
    op, loop = until.op, values.op
    count, active = kernels.numbers(loop, [0, 1])
    *_, end = [inner.operation for inner in loop.regions[0].blocks[0].operations]
    following = Kernel(end, "next")
    with following.body(), ir.InsertionPoint(kernels.where(active)):
        kernels.increase(count)
        wide = converted(_again(until, new), _wide())
        build.create("memref.store", [], [wide, active])
        build.create("scf.yield", [], [])
    following.launch([], [])
    for launch in [inner for inner in values.inside if inner.name == "gpu.launch_func"]:
        kernels.rewrite(module, launch, values, count, active)
    with ir.InsertionPoint(op), op.location:
        _write_loop(values, values.count(), active)
        done = as_index(kernels.number_in(count))
        places = {k: place for place, k in enumerate(until.states)}
        for k, result in enumerate(op.results):
            if k == until.index:
                result.replace_all_uses_with(values.copy(values.index, done, lambda x: x, {}))
            elif next(iter(result.uses), None) is not None:
                result.replace_all_uses_with(values.carried_at(places[k], done, lambda x: x))
    op.erase()


def _wide() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _again(until: _Until, new: dict[ir.Value, ir.Value]) -> ir.Value:
    """True if there is another step, at the insertion point."""
    copies = dict(new)
    for inner in until.work:
        copy_with(inner, copies)
    return copies[until.goes_on]


def _write_loop(values: StepValues, total: ir.Value, active: ir.Value) -> None:
    """The loop of the host, at the insertion point: more and more steps, then the question."""
    loop, flag = values.op, ir.IntegerType.get_signless(1)
    zero, one = build.const_index(0), build.const_index(1)
    yes = literal(1, flag)
    made = ir.Operation.create("scf.while", operands=[zero, yes], results=[build.index_type()], regions=2)
    before = ir.Block.create_at_start(made.regions[0], [build.index_type(), flag])
    after = ir.Block.create_at_start(made.regions[1], [build.index_type()])
    with ir.InsertionPoint(before):
        at, goes_on = before.arguments
        build.create("scf.condition", [], [(at < total) & goes_on, at])
    with ir.InsertionPoint(after):
        done = after.arguments[0]
        steps = larger(done, _FIRST)
        steps = smaller(steps, _MOST)
        steps = smaller(steps, total - done)
        for place, bound in enumerate((zero, steps, one)):
            loop.operands[place] = bound
        without_states(values)
        is_next = kernels.number_in(active).differs(build.const_i64(0))
        build.create("scf.yield", [], [done + steps, is_next])
