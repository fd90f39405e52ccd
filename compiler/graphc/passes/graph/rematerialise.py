# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Intermediate arrays are computed again where holding them would take more memory than a budget.

The units of a block are steps that read and make arrays, and a plan is an order of steps with copies.

Operations and arrays are numbers here: a plan is tried hundreds of times, and only the best one is made. An
array that is computed again exists in several *versions*, each with a lifetime of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graphc.ir.constants import CONSTANTS, element_dtype
from graphc.ir.diagnostics import fail, node_of
from graphc.ir.donations import offered
from graphc.ir.kinds import CHEAP, PER_ELEMENT, PRODUCTS, REDUCTIONS, flags_of, static_shape
from graphc.ir.plain import Array, Recomputed, attach
from graphc.ir.scan_view import scans
from graphc.ir.views import COUNTS, GATHERS
from graphc.ir.walk import functions, inputs_of, symbol_of, walk
from graphc.lowering.memory.donation import Donations
from graphc.lowering.memory.units import ALIASES, SCHEDULED, Units, root
from graphc.lowering.scans.scan import declared_sizes
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

# What an element costs that is not cheap, and how many flops of a product take as long as one cheap element.
_FUNCTION, _PRODUCT = 10, 8


@record(frozen=True)
class Node:
    """An operation of the block.

    Attributes:
        op: the operation. unit: the number of its unit.
        reads: the arrays that its operands are, or are views of.
        direct: those that it reads as they are.
        makes: the arrays that it computes.
        shape: of the loop that computes it; None for what is no loop, or of unknown size.
        flops: operations, a function such as `exp` counting as one. cost: the same by the time they take.
        is_pure: whether it can be computed again.
    """

    op: ir.Operation
    unit: int
    reads: tuple[int, ...]
    direct: frozenset[int]
    makes: tuple[int, ...]
    shape: tuple[int, ...] | None
    flops: int
    cost: int
    is_pure: bool

    @property
    def is_fusible(self) -> bool:
        """True if a loop over its elements can compute it where it reads it."""
        return self.shape is not None and self.op.name in PER_ELEMENT


@record(frozen=True)
class Step:
    """A unit, or a part of one that is computed again.

    Attributes:
        nodes: its operations.
        reads: the version that is read of each array.
        makes: the version that is made of each array that others read.
        added: operations that are computed again in its loop, in the order of the program.
        direct: the arrays that are read only at the position that is written.
        is_copy: whether the operations are copies.
    """

    nodes: tuple[int, ...]
    reads: Mapping[int, int]
    makes: Mapping[int, int]
    direct: frozenset[int]
    added: tuple[int, ...] = ()
    is_copy: bool = False


class Program:
    """The operations and arrays of a block, and its steps as they are.

    Args:
        order: the members of the block's units, in the order in which they are done.
        kept: values in memory of the caller, such as results.
        lent: arguments that the caller allows to be overwritten.

    Attributes:
        nodes: the operations. arrays: what they compute, by number. sizes: bytes of each array, 0 where
            they are not known. kinds: their types, as numbers. made_by: the node of each, None for arguments.
        unknown: how many arrays of unknown size are stored. protected: what an operation may overwrite.
        steps: one for each unit. versions: the array that each version is of.
    """

    def __init__(
        self, order: Sequence[Sequence[ir.Operation]], kept: Sequence[ir.Value], lent: Sequence[ir.Value]
    ) -> None:
        self._kept = {root(value) for value in kept}
        self._numbers: dict[ir.Value, int] = {}
        self.nodes: list[Node] = []
        self.arrays: list[ir.Value] = []
        self.sizes: list[int] = []
        self.made_by: list[int | None] = []
        self.versions: list[int] = []
        self._unsized: set[int] = set()
        self._kinds: dict[ir.Type, int] = {}
        self.kinds: list[int] = []
        for value in lent:
            self._add(value, None, 0)
        for unit, members in enumerate(order):
            for op in members:
                self._node(op, unit)
        self.protected = self._protected()
        self.steps = self._steps(len(order))

    def version(self, array: int) -> int:
        """A new version of an array."""
        self.versions.append(array)
        return len(self.versions) - 1

    def is_inline(self, array: int, shape: tuple[int, ...]) -> bool:
        """True if a loop over a shape reads an array at its own position."""
        return static_shape(self.arrays[array]) == shape

    def _add(self, value: ir.Value, node: int | None, size: int | None) -> int:
        number = self._numbers[value] = len(self.arrays)
        self.arrays.append(value)
        self.sizes.append(size or 0)
        self.made_by.append(node)
        if size is None:
            self._unsized.add(number)
        self.kinds.append(self._kinds.setdefault(value.type, len(self._kinds)))
        return number

    def _node(self, op: ir.Operation, unit: int) -> None:
        reads: dict[int, bool] = {}
        # Who reads a view reads the array.
        if op.name != "tensor.dim" and op.name not in ALIASES:
            for operand in inputs_of(op):
                source = root(operand)
                number = self._numbers.get(source)
                if number is not None:
                    reads[number] = reads.get(number, True) and source == operand
        number = len(self.nodes)
        is_loop = op.name in REDUCTIONS or op.name in PER_ELEMENT
        makes = [self._add(r, number, _bytes(r)) for r in op.results if self._takes_memory(op, r)]
        domain = _domain(op) if is_loop else None
        flops, cost = _work(op, domain)
        direct = frozenset(
            array for array, is_direct in reads.items() if is_direct and op.name not in GATHERS
        )
        is_pure = (is_loop and op.name not in GATHERS) or op.name in PRODUCTS
        node = Node(op, unit, tuple(reads), direct, tuple(makes), domain, flops, cost, is_pure)
        self.nodes.append(node)

    def _takes_memory(self, op: ir.Operation, result: ir.Value) -> bool:
        if op.name in ALIASES or op.name in COUNTS or op.name in CONSTANTS or result in self._kept:
            return False
        return isinstance(result.type, ir.RankedTensorType) and _bytes(result) != 0

    def _protected(self) -> set[int]:
        """Arrays that something else than loops and products reads: it may compute in their memory."""
        harmless = {"func.return", "tensor.dim", "tensor.extract"}
        return {
            array
            for node in self.nodes
            for array in node.reads
            if not (node.is_pure or node.op.name in harmless)
        }

    def _steps(self, units: int) -> list[Step]:
        members: list[list[int]] = [[] for _ in range(units)]
        for number, node in enumerate(self.nodes):
            members[node.unit].append(number)
        read_outside = {
            array
            for node in self.nodes
            for array in node.reads
            if (maker := self.made_by[array]) is None or self.nodes[maker].unit != node.unit
        }
        current = {array: self.version(array) for array, maker in enumerate(self.made_by) if maker is None}
        steps = []
        for nodes in members:
            made = {a: self.version(a) for n in nodes for a in self.nodes[n].makes if a in read_outside}
            own = {array for n in nodes for array in self.nodes[n].makes}
            read = {a: current[a] for n in nodes for a in self.nodes[n].reads if a not in own}
            steps.append(Step(tuple(nodes), read, made, self.direct(nodes)))
            current.update(made)
        self.unknown = len(self._unsized & read_outside)
        return steps

    def direct(self, nodes: Collection[int]) -> frozenset[int]:
        """The arrays that some operations read as they are, in a loop."""
        if any(self.nodes[n].shape is None for n in nodes):
            return frozenset()
        views = {a for n in nodes for a in self.nodes[n].reads if a not in self.nodes[n].direct}
        return frozenset(a for n in nodes for a in self.nodes[n].direct) - views


class Memory:
    """Memory that steps hold.

    Attributes:
        usage: bytes in use during each step.
        made, last: where a version is made, and where it is read last.
    """

    def __init__(self, program: Program, steps: Sequence[Step]) -> None:
        self.made: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for number, step in enumerate(steps):
            self.made.update(dict.fromkeys(step.makes.values(), number))
            self.last.update(dict.fromkeys(step.reads.values(), number))
        self.usage: list[int] = []
        sizes, versions, live = program.sizes, program.versions, 0
        for number, step in enumerate(steps):
            made = [array for array, version in step.makes.items() if version in self.last]
            ended = [versions[v] for v in step.reads.values() if self.last[v] == number]
            need = sum(sizes[array] for array in made)
            self.usage.append(live + need - _reused(program, step, made, ended))
            live += need - sum(sizes[array] for array in ended)

    @property
    def peak(self) -> int:
        """The most bytes in use at once."""
        return max(self.usage, default=0)

    def excess(self, limit: int) -> int:
        """By how much all steps together are above a limit."""
        return sum(use - limit for use in self.usage if use > limit)


def _reused(program: Program, step: Step, made: list[int], ended: list[int]) -> int:
    """The bytes of what is computed where an operand lies that nobody reads afterwards."""
    free = [program.kinds[array] for array in ended if array in step.direct]
    total = 0
    for array in made if free else ():
        if program.kinds[array] in free:
            free.remove(program.kinds[array])
            total += program.sizes[array]
    return total


def _bytes(value: ir.Value) -> int | None:
    """Bytes of a tensor; None where a size is not known."""
    shape = static_shape(value)
    known = [size for size in shape if size is not None]
    return (
        None
        if len(known) < len(shape)
        else math.prod(known) * element_dtype(value.type.element_type).itemsize
    )


def _domain(op: ir.Operation) -> tuple[int, ...] | None:
    """Iteration space of an operation; None where a size is not known."""
    shape = static_shape(op.operands[0] if op.name in REDUCTIONS else op.results[0])
    known = tuple(size for size in shape if size is not None)
    return known if len(known) == len(shape) else None


def _work(op: ir.Operation, domain: tuple[int, ...] | None) -> tuple[int, int]:
    """The flops of an operation, and its cost, in elements of cheap operations."""
    if domain is not None:
        count = math.prod(domain)
        return count, count * (1 if op.name in CHEAP or op.name in REDUCTIONS else _FUNCTION)
    if op.name not in PRODUCTS:
        return 0, 0
    transposed, _ = flags_of(op)
    sizes = [
        size or 1
        for size in (*static_shape(op.results[0]), static_shape(op.operands[0])[-2 if transposed else -1])
    ]
    return 2 * math.prod(sizes), 2 * math.prod(sizes) // _PRODUCT


# What is smaller by this factor than what is computed from it is kept, and not computed again.
_SMALL = 16


@record()
class Plan:
    """Steps, some of which compute again what others have computed.

    Attributes:
        steps: in order. memory: what they hold.
        cost: of all that is computed again, in elements of cheap operations.
        again: the array of each computation, and its flops.
    """

    steps: list[Step]
    memory: Memory
    cost: int = 0
    again: tuple[tuple[int, int], ...] = ()


@record(frozen=True)
class _Recipe:
    """Operations that compute an array, in order, and the versions of what they read."""

    nodes: list[int]
    leaves: dict[int, int]


def variants(program: Program, plan: Plan, version: int, peak: int) -> Iterable[Plan]:
    """The plans in which steps after a peak do not read a version that was made before it.

    Each of these steps computes the array itself, or the first one does and the others read that.
    """
    late = [
        number
        for number in range(peak + 1, plan.memory.last[version] + 1)
        if version in plan.steps[number].reads.values()
    ]
    each = _computed_at(program, plan, version, late, shared=False)
    if each is not None:
        yield each
    if len(late) > 1:
        once = _computed_at(program, plan, version, late, shared=True)
        if once is not None:
            yield once


def _computed_at(program: Program, plan: Plan, version: int, late: list[int], *, shared: bool) -> Plan | None:
    array = program.versions[version]
    work = _Rewrite(program, plan)
    for number in late[:1] if shared else late:
        recipe = work.recipe(array, number)
        if recipe is None:
            return None
        work.insert(array, number, recipe, late if shared else [number])
    return work.plan(array)


class _Rewrite:
    """New steps, made of those of a plan."""

    def __init__(self, program: Program, plan: Plan) -> None:
        self._program, self._old = program, plan
        self._steps = list(plan.steps)
        self._before: dict[int, list[Step]] = {}
        self._versions: dict[int, list[int]] = {}
        for version in plan.memory.last:
            self._versions.setdefault(program.versions[version], []).append(version)
        self._flops = self._cost = 0

    def plan(self, array: int) -> Plan:
        """The new plan, in which an array is computed again."""
        steps: list[Step] = []
        for number, step in enumerate(self._steps):
            steps += self._before.get(number, ())
            steps.append(step)
        again = (*self._old.again, (array, self._flops))
        return Plan(steps, Memory(self._program, steps), self._old.cost + self._cost, again)

    # -- what is computed again ------------------------------------------------------------------------------

    def recipe(self, array: int, at: int) -> _Recipe | None:
        """Operations that compute an array at a step, from what is there then; None if that is not
        possible.
        """
        found = _Recipe([], {})
        return found if self._collect(array, array, at, found, set()) else None

    def _collect(self, array: int, goal: int, at: int, found: _Recipe, done: set[int]) -> bool:
        if array in done:
            return True
        done.add(array)
        if array != goal:
            version = self._there(array, goal, at)
            if version is not None:
                found.leaves[array] = version
                return True
        maker = self._program.made_by[array]
        if maker is None or not self._program.nodes[maker].is_pure:
            return self._extend(array, goal, at, found)
        if not all(self._collect(x, goal, at, found, done) for x in self._program.nodes[maker].reads):
            return False
        found.nodes.append(maker)
        return True

    def _there(self, array: int, goal: int, at: int) -> int | None:
        """The version of an array that is held at a step in any case, or that costs little to hold."""
        memory, sizes = self._old.memory, self._program.sizes
        own = self._steps[at].reads.get(array)
        if own is not None:
            return own
        made = [v for v in self._versions.get(array, ()) if memory.made.get(v, -1) < at]
        held = [v for v in made if memory.last[v] >= at]
        if not held and (array in self._program.protected or sizes[array] * _SMALL > sizes[goal]):
            return None
        return max(held or made, key=lambda v: memory.made.get(v, -1), default=None)

    def _extend(self, array: int, goal: int, at: int, found: _Recipe) -> bool:
        """Holds an array that cannot be computed again."""
        made = [v for v in self._versions.get(array, ()) if self._old.memory.made.get(v, -1) < at]
        if array == goal or not made or array in self._program.protected:
            return False
        found.leaves[array] = max(made, key=lambda v: self._old.memory.made.get(v, -1))
        return True

    # -- where it is computed --------------------------------------------------------------------------------

    def insert(self, array: int, at: int, recipe: _Recipe, readers: Sequence[int]) -> None:
        """Computes an array before a step, or in its loop, for these steps."""
        nodes = self._program.nodes
        groups: dict[int, list[int]] = {}
        for number in sorted(recipe.nodes, key=lambda n: (nodes[n].unit, n)):
            groups.setdefault(nodes[number].unit, []).append(number)
        *before, last = groups.values()
        in_loop = len(readers) == 1 and self._fits_loop(array, at, last)
        known = dict(recipe.leaves)
        for group in before if in_loop else groups.values():
            self._before.setdefault(at, []).append(self._copy(array, group, recipe.nodes, known))
        for number in readers:
            step = self._steps[number]
            reads = {x: version for x, version in step.reads.items() if x != array}
            if in_loop:
                self._count(set(last) - set(step.added))
                own = {x for n in last for x in nodes[n].makes}
                reads = {x: known[x] for n in last for x in nodes[n].reads if x not in own} | reads
                added = tuple(sorted({*step.added, *last}))
                direct = self._program.direct([*step.nodes, *added])
                self._steps[number] = replace(step, reads=reads, added=added, direct=direct)
            else:
                self._steps[number] = replace(step, reads={**reads, array: known[array]})

    def _copy(self, array: int, group: list[int], all_nodes: list[int], known: dict[int, int]) -> Step:
        """A step that computes a part of a recipe; what it makes becomes known."""
        nodes, program = self._program.nodes, self._program
        self._count(group)
        own = {x for n in group for x in nodes[n].makes}
        needed = {x for n in all_nodes if n not in group for x in nodes[n].reads} | {array}
        reads = {x: known[x] for n in group for x in nodes[n].reads if x not in own}
        makes = {x: program.version(x) for x in own & needed}
        known.update(makes)
        return Step(tuple(group), reads, makes, program.direct(group), is_copy=True)

    def _count(self, nodes: Iterable[int]) -> None:
        for number in nodes:
            self._flops += self._program.nodes[number].flops
            self._cost += self._program.nodes[number].cost

    def _fits_loop(self, array: int, at: int, group: list[int]) -> bool:
        """True if a step can compute operations in its own loop, each at the position that it writes."""
        program, step = self._program, self._steps[at]
        shape = program.nodes[step.nodes[0]].shape
        if (
            array not in step.direct
            or shape is None
            or "cluster" not in program.nodes[step.nodes[0]].op.attributes
        ):
            return False
        return all(program.nodes[n].is_fusible and program.nodes[n].shape == shape for n in group)


def rewrite(program: Program, plan: Plan, block: ir.Block) -> int:
    """Makes a plan come true; returns how many operations on elements are done more than before.

    What computes an array that nobody reads any more is erased.
    """
    return _Rewriter(program, block).run(plan)


class _Rewriter:
    def __init__(self, program: Program, block: ir.Block) -> None:
        self._program = program
        self._end = block.operations[-1].operation
        # What stands for a version of an array, where that is not the array itself.
        self._values: dict[int, ir.Value] = {}
        # Operations may have to read other arrays by the time they are copied.
        self._operands = [list(node.op.operands) for node in program.nodes]
        clusters = [
            ir.IntegerAttr(node.op.attributes["cluster"]).value
            for node in program.nodes
            if "cluster" in node.op.attributes
        ]
        self._flops = 0
        self._next_cluster = max(clusters, default=-1) + 1

    def run(self, plan: Plan) -> int:
        for step in plan.steps:
            with ir.InsertionPoint(self._end):
                self._copy(step) if step.is_copy else self._move(step)
        for node in reversed(self._program.nodes):
            is_removable = node.is_pure or node.op.name in ALIASES
            if is_removable and all(next(result.uses, None) is None for result in node.op.results):
                self._flops -= node.flops
                node.op.erase()
        return self._flops

    def _move(self, step: Step) -> None:
        """Moves the operations of a unit to the end of what has been done."""
        nodes = self._program.nodes
        first = nodes[step.nodes[0]].op
        mapping = self._mapping(step)
        cluster = first.attributes["cluster"] if step.added else None
        for number in step.added:
            self._clone(number, cluster, mapping)
        for number in step.nodes:
            op = nodes[number].op
            if op == self._end:
                self._read(op, mapping)
                continue
            op.move_before(self._end)
            if mapping:
                self._read(op, mapping)

    def _copy(self, step: Step) -> None:
        """Computes the operations of a step again, as a unit of their own."""
        mapping = self._mapping(step)
        cluster = None
        if "cluster" in self._program.nodes[step.nodes[0]].op.attributes:
            cluster = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self._next_cluster)
            self._next_cluster += 1
        for number in (*step.added, *step.nodes):
            self._clone(number, cluster, mapping)
        for array, version in step.makes.items():
            self._values[version] = mapping[self._program.arrays[array]]

    def _mapping(self, step: Step) -> dict[ir.Value, ir.Value]:
        """Substitutes for the arrays that a step reads."""
        return {
            self._program.arrays[array]: self._values[version]
            for array, version in step.reads.items()
            if version in self._values
        }

    def _clone(self, number: int, cluster: ir.Attribute | None, mapping: dict[ir.Value, ir.Value]) -> None:
        op = self._program.nodes[number].op
        copy = op.clone()
        for position, operand in enumerate(self._operands[number]):
            copy.operands[position] = operand
        self._flops += self._program.nodes[number].flops
        if cluster is not None:
            copy.attributes["cluster"] = cluster
        with ir.InsertionPoint(copy):
            self._read(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))

    def _read(self, op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
        """Lets an operation, and those in its regions, read other arrays."""
        with ir.InsertionPoint(op):
            for inner in [op, *walk(op)] if len(op.regions) else [op]:
                for position, operand in enumerate(inner.operands):
                    new = self._seen(operand, mapping)
                    if new != operand:
                        inner.operands[position] = new

    def _seen(self, value: ir.Value, mapping: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value, with views made again of arrays that others stand for."""
        if value in mapping:
            return mapping[value]
        source = root(value)
        if source == value or source not in mapping:
            return value
        view = value.owner.operation
        copy = view.clone()
        copy.operands[0] = self._seen(view.operands[0], mapping)
        mapping[value] = copy.results[0]
        return copy.results[0]


# How many arrays are tried at a peak, and how many steps all plans that are tried may have together.
_CANDIDATES, _PATIENCE = 48, 20_000_000
# Peaks are lowered by this part of what is there, so that only arrays count that are alive at a peak.
_NOTCH = 16


def search(program: Program, budget: int) -> Plan:
    """The cheapest plan found whose peak is within a budget, else the one with the lowest peak.

    Args:
        program: the steps as they are.
        budget: bytes.
    """
    plan = best = Plan(program.steps, Memory(program, program.steps))
    patience = _PATIENCE
    while best.memory.peak > budget and patience > 0:
        limit = max(budget, best.memory.peak - max(best.memory.peak // _NOTCH, 1))
        plan = best
        while plan.memory.peak > limit:
            tried = list(_steps_from(program, plan))
            patience -= sum(len(each.steps) for each in tried)
            excess = plan.memory.excess(limit)
            better = [each for each in tried if each.memory.excess(limit) < excess]
            if not better or patience < 0:
                break
            plan = max(
                better,
                key=lambda each: (excess - each.memory.excess(limit)) / (1 + each.cost - plan.cost),
            )
        if plan.memory.peak >= best.memory.peak:
            break
        best = plan
    return best


def _steps_from(program: Program, plan: Plan) -> Iterator[Plan]:
    """The plans in which one array more is not held at the peak."""
    memory = plan.memory
    peak = memory.usage.index(memory.peak)
    alive = [
        version
        for version, last in memory.last.items()
        if memory.made.get(version, peak) < peak < last and _is_candidate(program, version)
    ]
    alive.sort(key=lambda version: -program.sizes[program.versions[version]])
    for version in alive[:_CANDIDATES]:
        yield from variants(program, plan, version, peak)


def _is_candidate(program: Program, version: int) -> bool:
    array = program.versions[version]
    maker = program.made_by[array]
    return maker is not None and program.nodes[maker].is_pure and program.sizes[array] > 0


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
    """Rematerialised arrays, with how often and with how many flops each is computed again."""
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
