# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an array is computed again at a later step, and the steps with that done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from graphc.passes.graph.memory._steps import Memory, Program, Step
from graphc_runtime.record import record

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
        """What computes an array at a step, from what is there then; None if that is not possible."""
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
        """Whether a step can compute operations in its own loop, each at the position that it writes."""
        program, step = self._program, self._steps[at]
        shape = program.nodes[step.nodes[0]].shape
        if (
            array not in step.direct
            or shape is None
            or "cluster" not in program.nodes[step.nodes[0]].op.attributes
        ):
            return False
        return all(program.nodes[n].is_fusible and program.nodes[n].shape == shape for n in group)
