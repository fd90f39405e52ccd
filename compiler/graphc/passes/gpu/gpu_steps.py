# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the host, of which each step asks for the same.

Values in such a loop become arithmetic on the number of the step (`StepValues`), which kernels do themselves
(`rewrite`); what need not be in a step is hoisted; loops that end when the device says so run blocks of steps
(`as_blocks_of_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

from graphc.ir import build
from graphc.ir.lifetimes import VIEWS
from graphc.ir.value import as_index, converted, flag, larger, parts_of, smaller
from graphc.ir.walk import copy_with, definition, is_used, symbol_of, walk
from graphc.lowering.carried import carry_while, loop, when
from graphc.passes import Pass
from graphc.passes.gpu._host import SIZES, HostLoop, replace_loops
from graphc.passes.gpu._kernel import Kernel, allocate, kernels_of
from graphc.passes.gpu._nest import size_key
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What can be computed in a kernel as well as on the host.
_VIEWS = VIEWS | {"memref.dim", "memref.extract_strided_metadata"}
_OTHERS = frozenset(("gpu.launch_func", "scf.if", "scf.for", "scf.while", "scf.yield", "scf.condition"))


def is_pure(op: ir.Operation) -> bool:
    """True if an operation gives a number or a view that depends on nothing but its operands."""
    return op.name in _VIEWS or op.name.startswith("arith.")


class StepValues(HostLoop):
    """The body of an `scf.for` whose steps are launches."""

    def __init__(self, op: ir.Operation) -> None:
        super().__init__(op)
        varying: set[ir.Value] = {self.index, *self.carried}
        self.inside, self.varies = walk(op), varying.__contains__  # whether a value depends on the step
        for inner in self.inside:
            if any(map(self.varies, inner.operands)):
                varying.update(inner.results)

    @property
    def launches(self) -> list[ir.Operation]:
        """Those of a step."""
        return [inner for inner in self.inside if inner.name == "gpu.launch_func"]

    def count(self) -> ir.Value:
        """Number of steps, at the insertion point."""
        return larger(parts_of(self.upper - self.lower, self.step), 0)

    def are_computable(self) -> bool:
        """True if launches are all that happens in a step, and what varies are arguments of launches alone,
        which kernels can compute.
        """
        end = self.inside[-1]
        if not self.launches:
            return False
        for inner in self.inside:
            if not is_pure(inner) and inner.name not in _OTHERS:
                return False
            varying = [k for k, operand in enumerate(inner.operands) if self.varies(operand)]
            if not varying or is_pure(inner) or inner == end:
                continue
            if inner.name != "gpu.launch_func" or varying[0] < SIZES:
                return False
        return all(self._is_computable(k) for k in range(len(self.carried)))

    def _is_computable(self, k: int) -> bool:
        kind, after = self.carried[k].type, self.yields[k]
        if after in self.carried:
            return isinstance(kind, ir.MemRefType) or after == self.carried[k]
        return isinstance(kind, ir.MemRefType) and self._needs_index_only(after)

    def _needs_index_only(self, value: ir.Value) -> bool:
        made = definition(value)
        if not self.varies(value) or value == self.index:
            # What a step allocates is not the same for the next one.
            return made is None or made not in self.inside
        if made is None:
            return False
        return all(not self.varies(x) or self._needs_index_only(x) for x in made.operands)

    def fix_sizes(self) -> None:
        """Sizes of views become what the views were made with, and those of carried arrays the sizes of the
        initial ones: states keep theirs, which is checked before loops.
        """
        for inner in self.inside:
            if inner.name == "memref.dim" and self.varies(inner.operands[0]):
                axis = build.constant_value(inner.operands[1])
                assert axis is not None, "axes are constants"
                found = size_key(inner.operands[0], axis, self.starts)
                with ir.InsertionPoint(inner), inner.location:
                    size = build.dim(*found) if isinstance(found, tuple) else as_index(found)
                inner.results[0].replace_all_uses_with(size)

    def copy(self, value: ir.Value, number: ir.Value, copies: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value of the step with a number, from 0 on, at the insertion point; `copies` are of one step."""
        if not self.varies(value) or value in copies:
            return copies.get(value, value)
        if value == self.index:
            found = self.lower + number * self.step
        elif value in self.carried:
            found = self.carried_at(self.carried.index(value), number)
        else:
            for operand in value.owner.operands:
                self.copy(operand, number, copies)
            copy_with(value.owner.operation, copies)
            return copies[value]
        return copies.setdefault(value, found)

    def carried_at(self, k: int, number: ir.Value) -> ir.Value:
        """Values carried into the step with a number: initial arrays in turn, or the results of a
        step before.
        """
        way = [k]
        while (after := self.yields[way[-1]]) in self.carried and self.carried.index(after) not in way:
            way.append(self.carried.index(after))
        count = build.const_index(len(way))
        if after in self.carried:
            # Those from the first one on come in turn.
            first = way.index(self.carried.index(after))
            turn = build.index_op("remsi", number - first, build.const_index(len(way) - first))
            at = build.select(number < first, number, turn + first) if first else turn
            found = self.initial[way.pop()]
        else:
            # Before there was such a step, its number is of no account.
            at, found = number, self.copy(after, larger(number - count, 0), {})
        for place in reversed(range(len(way))):
            found = build.select(at.equals(place), self.initial[way[place]], found)
        return found


def numbers(before: ir.Operation, values: Sequence[int]) -> list[ir.Value]:
    """Arrays with a number each, which a kernel writes before an operation."""
    start = Kernel(before, "start")
    with start.host():
        arrays = [allocate([], ir.IntegerType.get_signless(64)) for _ in values]
    with start.body():
        for array, value in zip(arrays, values, strict=True):
            array[()] = build.const_i64(value)
    start.launch([], [])
    return arrays


def is_set(array: ir.Value) -> ir.Value:
    """True if a number is not 0, the same for all threads."""
    return array[()].differs(0)


def rewrite(
    module: ir.Module,
    launch: ir.Operation,
    values: StepValues,
    array: ir.Value,
    active: ir.Value | None = None,
) -> None:
    """Launches another kernel instead, which computes arguments that vary from the number of the step, read
    in an array; where the number in `active` is 0, it does nothing.
    """
    sizes, given = list(launch.operands)[:SIZES], list(launch.operands)[SIZES:]
    name = _name_of(launch)
    function = next(op for op in kernels_of(module.operation) if symbol_of(op) == name)
    kernel = Kernel(launch, name.rstrip("0123456789").rstrip("_"))
    with kernel.body():
        number, copies = as_index(array[()]), dict[ir.Value, ir.Value]()
        arguments = [values.copy(value, number, copies) for value in given]
        with nullcontext() if active is None else when(is_set(active)):
            kernel.copy(function, arguments)
    kernel.launch(sizes[:3], sizes[3:])
    launch.erase()


def _name_of(launch: ir.Operation) -> str:
    return str(ir.SymbolRefAttr(launch.attributes["kernel"]).value[-1])


# Division by what may be 0 stays in the loop, which may have no steps.
_DIVISIONS = frozenset(
    f"arith.{name}" for name in "divsi divui remsi remui floordivsi ceildivsi ceildivui".split()
)


def prepared(op: ir.Operation) -> StepValues:
    """The values of a loop, out of which arithmetic, views and temporary arrays have been moved that are the
    same in all steps.
    """
    StepValues(op).fix_sizes()
    values = StepValues(op)
    inside = set(values.inside)

    def is_outside(value: ir.Value) -> bool:
        owner = definition(value) or value.owner.owner.operation
        return owner != op and owner not in inside

    for inner in values.inside:
        if is_pure(inner) or (inner.name == "memref.alloc" and not _is_handed_on(inner.results[0])):
            # A loop without steps computes nothing; it allocates what is freed again.
            is_safe = inner.name not in _DIVISIONS or _is_not_zero(inner.operands[1])
            if is_safe and all(map(is_outside, inner.operands)):
                inner.move_before(op)
                inside.remove(inner)
    return StepValues(op)


def _is_handed_on(array: ir.Value) -> bool:
    """True if a loop or a branch passes an array on: the next step reads it, and writes another one."""
    users = [use.owner.operation for use in array.uses]
    views = [result for user in users if is_pure(user) for result in user.results]
    return any(user.name in ("scf.yield", "scf.condition") for user in users) or any(
        map(_is_handed_on, views)
    )


def _is_not_zero(value: ir.Value) -> bool:
    number = build.constant_value(value)
    if (chosen := definition(value, "arith.select")) is not None:
        return all(map(_is_not_zero, list(chosen.operands)[1:]))
    if (most := definition(value, "arith.maxsi")) is not None:
        return any((build.constant_value(x) or 0) > 0 for x in most.operands)
    return bool(number)


def without_states(values: StepValues) -> None:
    """The same loop, with nothing carried."""
    op = values.op
    lower, upper, step = list(op.operands)[:3]
    _, block = loop(upper, [], start=lower, step=step)
    values.index.replace_all_uses_with(block.arguments[0])
    for state, initial in zip(values.carried, values.initial, strict=True):
        # Only views that nothing uses any more.
        state.replace_all_uses_with(initial)
    # Launches have become other ones.
    *body, end = [inner.operation for inner in op.regions[0].blocks[0].operations]
    end.erase()
    for inner in body:
        block.append(inner)
    for inner in reversed(body):
        if is_pure(inner) and not any(map(is_used, inner.results)):
            inner.erase()
    with ir.InsertionPoint(block):
        build.create("scf.yield", [], [])
    op.erase()


# Steps that are launched before the host asks whether there is another one: the first time, and at most.
_FIRST, _MOST = 4, 64


@record(frozen=True)
class _Until:
    """An `scf.while` over an index, of which `work` in the body computes whether it `goes_on`.

    Attributes:
        index, states: the argument of the body that is the index, and the numbers of the others.
    """

    op: ir.Operation
    lower: ir.Value
    upper: ir.Value
    step: ir.Value
    index: int
    states: tuple[int, ...]
    goes_on: ir.Value
    work: tuple[ir.Operation, ...]


def as_blocks_of_steps(module: ir.Module, op: ir.Operation) -> Callable[[], None] | None:
    """The replacement of an `scf.while` by a loop of loops of launches; None if that is not possible."""
    until = _as_until(op)
    if until is None:
        return None
    before = set(_siblings(op))
    new: dict[ir.Value, ir.Value] = {}
    copy = _copied(until, new)
    values = prepared(copy)
    given = [new.get(x, x) for work in until.work for x in work.operands]
    if not values.are_computable() or any(map(values.varies, given)):
        copy.erase()
        for moved in reversed([x for x in _siblings(op) if x not in before]):
            if not any(map(is_used, moved.results)):
                moved.erase()
        return None
    return partial(_lower_until, module, until, values, new)


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
    start = definition(op.operands[given.index(flags[0])], "arith.constant")
    if upper in given or start is None or not ir.IntegerAttr(start.attributes["value"]).value:
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


def _step(after: ir.Value, index: ir.Value) -> ir.Value | None:
    """Increment of an index, if it is a constant above 0."""
    made = definition(after, "arith.addi")
    others = [] if made is None else [x for x in made.operands if x != index]
    return others[0] if len(others) == 1 and (build.constant_value(others[0]) or 0) > 0 else None


def _work(value: ir.Value, body: list[ir.Operation]) -> tuple[ir.Operation, ...] | None:
    """Operations that compute a condition from elements of arrays, if nothing else in the body needs them."""
    found: set[ir.Operation] = set()
    open_ = [value]
    while open_:
        owner = definition(open_.pop())
        if owner is None or owner not in body or owner in found:
            continue
        if owner.name != "memref.load" and not owner.name.startswith("arith."):
            return None
        found.add(owner)
        # Which array an element is of is known to the host.
        open_ += list(owner.operands)[1:] if owner.name == "memref.load" else list(owner.operands)
    loads = [op for op in found if op.name == "memref.load"]
    if not loads or not all(_keeps(op, body) for op in loads):
        return None
    users = [use.owner.operation for op in found for result in op.results for use in result.uses]
    is_private = all(user in found or user.name == "scf.yield" for user in users)
    return tuple(op for op in body if op in found) if is_private else None


def _keeps(load: ir.Operation, body: list[ir.Operation]) -> bool:
    """True if an element is the same at the end of the body."""
    rest, array = body[body.index(load) :], load.operands[0]
    is_own = definition(array, "memref.alloc") is not None
    is_last = all(use.owner.operation not in rest[1:] for use in array.uses)
    return (is_own and is_last) or not any(op.name == "gpu.launch_func" for op in rest)


def _copied(until: _Until, new: dict[ir.Value, ir.Value]) -> ir.Operation:
    """The steps as an `scf.for` before the loop, without what says whether there is another one; `new` gains
    the copies of values.
    """
    op = until.op
    before, after = (region.blocks[0] for region in op.regions)
    given: list[ir.Value] = list(before.arguments)
    *_, condition = before.operations
    *body, end = [inner.operation for inner in after.operations]
    passed = list(condition.operation.operands)[1:]
    initial = [op.operands[given.index(passed[k])] for k in until.states]
    with ir.InsertionPoint(op), op.location:
        made, block = loop(until.upper, initial, start=until.lower, step=until.step)
    new[after.arguments[until.index]] = block.arguments[0]
    for place, k in enumerate(until.states):
        new[after.arguments[k]] = block.arguments[1 + place]
    with ir.InsertionPoint(block), op.location:
        for inner in body:
            if inner not in until.work:
                copy_with(inner, new)
        yields = [end.operands[given.index(passed[k])] for k in until.states]
        build.create("scf.yield", [], [new.get(x, x) for x in yields])
    return made


def _lower_until(module: ir.Module, until: _Until, values: StepValues, new: dict[ir.Value, ir.Value]) -> None:
    op, loop = until.op, values.op
    count, active = numbers(loop, [0, 1])
    following = Kernel(_end(loop), "next")
    with following.body(), when(is_set(active)):
        count[()] = count[()] + 1
        copies = dict(new)
        for inner in until.work:
            copy_with(inner, copies)
        active[()] = converted(copies[until.goes_on], ir.IntegerType.get_signless(64))
    following.launch([], [])
    for launch in values.launches:
        rewrite(module, launch, values, count, active)
    with ir.InsertionPoint(op), op.location:
        _write_loop(values, values.count(), active)
        done = as_index(count[()])
        places = {k: place for place, k in enumerate(until.states)}
        for k, result in enumerate(op.results):
            if k == until.index:
                result.replace_all_uses_with(values.copy(values.index, done, {}))
            elif is_used(result):
                result.replace_all_uses_with(values.carried_at(places[k], done))
    op.erase()


def _end(loop: ir.Operation) -> ir.Operation:
    """The operation that ends a step."""
    *_, end = loop.regions[0].blocks[0].operations
    return end.operation


def _write_loop(values: StepValues, total: ir.Value, active: ir.Value) -> None:
    """The loop of the host, at the insertion point: more and more steps, then the question."""
    loop, zero = values.op, build.const_index(0)

    def goes_on(carried: list[ir.Value]) -> ir.Value:
        return (carried[0] < total) & carried[1]

    def block(carried: list[ir.Value]) -> list[ir.Value]:
        done = carried[0]
        steps = smaller(smaller(larger(done, _FIRST), _MOST), total - done)
        for place, bound in enumerate((zero, steps, build.const_index(1))):
            loop.operands[place] = bound
        without_states(values)
        again = is_set(active)
        return [done + steps, again]

    carry_while([zero, flag(True)], goes_on, block)


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
        def found(op: ir.Operation) -> Callable[[], None] | None:
            if op.name == "scf.while":
                return as_blocks_of_steps(module, op)
            values = prepared(op)
            return partial(_lower, module, values) if values.are_computable() else None

        count = replace_loops(module, found, lambda lower: lower(), ("scf.for", "scf.while"))
        self.count("loops", count)
        launched = {_name_of(op) for op in walk(module.operation) if op.name == "gpu.launch_func"}
        for op in kernels_of(module.operation) if count else ():
            if op.name == "gpu.func" and symbol_of(op) not in launched:
                op.erase()


def _lower(module: ir.Module, values: StepValues) -> None:
    op = values.op
    varying = [x for x in values.launches if any(map(values.varies, x.operands))]
    if varying:
        (counter,) = numbers(op, [0])
        following = Kernel(_end(op), "next")
        with following.body():
            counter[()] = counter[()] + 1
        following.launch([], [])
        for launch in varying:
            rewrite(module, launch, values, counter)
    used = [k for k, result in enumerate(op.results) if is_used(result)]
    with ir.InsertionPoint(op), op.location:
        for k in used:
            op.results[k].replace_all_uses_with(values.carried_at(k, values.count()))
        without_states(values)
