# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of steps in the blocks of a `graphc.emit.conditional_plan`, by list scheduling."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import field

from graphc.emit.conditional_blocks import ALWAYS, Alias, Block, Conditional, Formula, NoOrder
from graphc.graph.basic import Apply, Variable
from graphc.graph.demand import Literal
from graphc_runtime.record import record

_CIRCLE = "a value is needed under a condition that depends on it"


class Unit:
    """What is scheduled as one: a node, an output of an `IfElse`, or an alias.

    Attributes:
        position: place in the order of the graph.
        step: the node or alias; for an output of an `IfElse` the node.
        choice: the output with its two values, for an output of an `IfElse`.
        inputs, outputs: variables.
        formula: when it is needed, where its block runs.
    """

    __slots__ = ("choice", "formula", "inputs", "outputs", "position", "step")

    def __init__(
        self,
        position: int,
        step: Apply | Alias,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        formula: Formula,
        choice: tuple[Variable, Variable, Variable] | None = None,
    ) -> None:
        self.position, self.step, self.choice = position, step, choice
        self.inputs, self.outputs, self.formula = inputs, outputs, formula

    def __lt__(self, other: Unit) -> bool:
        return self.position < other.position


@record(eq=False)
class Group:
    """Units of one conditional.

    Attributes:
        test: as in `Conditional`.
        missing: how many dependences on units outside are not met yet.
        left: how many units are not scheduled yet.
        ready: units that can run, a heap.
        side: for each unit its side, and its formula there; none for choices.
    """

    test: Formula
    missing: int = 0
    left: int = 0
    ready: list[Unit] = field(default_factory=list)
    side: dict[Unit, tuple[bool, Formula]] = field(default_factory=dict)


class Scheduler:
    """Fills one block.

    Args:
        block: the block.
        units: what is needed somewhere in it.
        known: the sides of conditions that are decided here.
    """

    def __init__(self, block: Block, units: Sequence[Unit], known: dict[Variable, bool]) -> None:
        self._block, self._known = block, known
        self._units = [self._resolved(unit) for unit in units]
        self._maker = {v: unit for unit in self._units for v in unit.outputs}
        self._groups: dict[object, Group] = {}
        self._group: dict[Unit, Group] = {}
        for unit in self._units:
            self._assign(unit)
        self._readers: dict[Unit, list[Unit]] = {unit: [] for unit in self._units}
        self._waiting: dict[Unit, int] = {}
        self._ready: list[Unit] = []
        for unit in self._units:
            self._count(unit)

    def _resolved(self, unit: Unit) -> Unit:
        """A choice whose condition is known as an alias."""
        if unit.choice is None or unit.formula != ALWAYS:
            return unit
        side = self._known.get(unit.inputs[0])
        if side is None:
            return unit
        output, a, b = unit.choice
        value = a if side else b
        return Unit(unit.position, Alias(output, value), [value], [output], ALWAYS)

    # -- groups ----------------------------------------------------------------------------------------------

    def _assign(self, unit: Unit) -> None:
        if unit.formula == ALWAYS:
            if unit.choice is not None:
                self._join(unit, unit.inputs[0], (((unit.inputs[0], True),),))
            return
        path = unit.formula[0]
        if len(unit.formula) == 1 and self._here(path[0][0]):
            condition, side = path[0]
            group = self._join(unit, condition, (((condition, True),),))
            group.side[unit] = (side, (path[1:],))
            return
        common = frozenset.intersection(*map(frozenset, unit.formula))
        first = next((literal for literal in path if literal in common and self._here(literal[0])), None)
        if first is not None:
            condition, side = first
            group = self._join(unit, condition, (((condition, True),),))
            group.side[unit] = (side, _without(unit.formula, {first}))
            return
        test = _without(unit.formula, common)
        if () in test:
            raise NoOrder(f"{unit.step} is needed under a condition that is not known in time")
        group = self._join(unit, frozenset(map(frozenset, test)), test)
        group.side[unit] = (True, (tuple(literal for literal in path if literal in common),))

    def _join(self, unit: Unit, key: object, test: Formula) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(test)
        group.left += 1
        self._group[unit] = group
        return group

    def _here(self, condition: Variable) -> bool:
        """Whether a condition is known in this block, outside of all groups."""
        unit = self._maker.get(condition)
        return unit is None or unit.formula == ALWAYS

    # -- order -----------------------------------------------------------------------------------------------

    def _count(self, unit: Unit) -> None:
        """Notes what a unit has to wait for."""
        group = self._group.get(unit)
        # Conditions of regions inside a group have to be known, too, where they are computed outside of it.
        needs = [*unit.inputs, *(condition for path in unit.formula for condition, _ in path)]
        makers = dict.fromkeys(self._maker[v] for v in needs if v in self._maker)
        for maker in makers:
            self._readers[maker].append(unit)
            if group is not None and self._group.get(maker) is not group:
                group.missing += 1
        self._waiting[unit] = len(makers)
        if not makers:
            self._enqueue(unit)

    def _enqueue(self, unit: Unit) -> None:
        group = self._group.get(unit)
        heapq.heappush(self._ready if group is None else group.ready, unit)

    def _done(self, unit: Unit) -> None:
        group = self._group.get(unit)
        for reader in self._readers[unit]:
            self._waiting[reader] -= 1
            other = self._group.get(reader)
            if other is not None and other is not group:
                other.missing -= 1
            if not self._waiting[reader]:
                self._enqueue(reader)

    def run(self) -> None:
        """Orders everything.

        Raises:
            NoOrder: units wait for each other.
        """
        pending = list(self._groups.values())
        while True:
            while self._ready:
                self._place(heapq.heappop(self._ready))
            pending = [group for group in pending if group.left]
            if not pending:
                break
            self._open(*self._next(pending))
        if any(self._waiting.values()):
            raise NoOrder(_CIRCLE)

    def _next(self, pending: Sequence[Group]) -> tuple[Group, list[Unit]]:
        """The group to open, and its units that run then: all of them, or what others wait for."""
        for group in sorted(pending, key=lambda g: g.missing > 0):
            chunk = self._chunk(group)
            if chunk:
                return group, chunk
        raise NoOrder(_CIRCLE)

    def _chunk(self, group: Group) -> list[Unit]:
        ready, found = list(group.ready), []
        waiting: dict[Unit, int] = {}
        while ready:
            unit = heapq.heappop(ready)
            found.append(unit)
            for reader in self._readers[unit]:
                if self._group.get(reader) is group:
                    waiting[reader] = waiting.get(reader, self._waiting[reader]) - 1
                    if not waiting[reader]:
                        heapq.heappush(ready, reader)
        if len(found) == group.left:
            return found
        # What only later parts of the group read is computed there, so that it need not be handed on.
        wanted: set[Unit] = set()
        for unit in reversed(found):
            if any(r in wanted or self._group.get(r) is not group for r in self._readers[unit]):
                wanted.add(unit)
        return [unit for unit in found if unit in wanted]

    def _place(self, unit: Unit) -> None:
        self._block.steps.append(unit.step)
        self._block.defined.update(dict.fromkeys(unit.outputs))
        self._done(unit)

    def _open(self, group: Group, chunk: Sequence[Unit]) -> None:
        """A conditional with some units of a group."""
        for unit in chunk:
            self._done(unit)
        gone = set(chunk)
        group.left -= len(chunk)
        group.ready = sorted(unit for unit in group.ready if unit not in gone)
        node = next((u.step for u in chunk if u.choice is not None and u not in group.side), chunk[0].step)
        assert isinstance(node, Apply)
        conditional = Conditional(self._block, group.test, node)
        self._block.steps.append(conditional)
        for unit in chunk:
            if unit not in group.side:
                assert unit.choice is not None
                conditional.choices.append(unit.choice)
                self._block.defined.update(dict.fromkeys(unit.outputs))
        for side, block in zip((True, False), conditional.sides, strict=True):
            self._fill(block, group, chunk, side)

    def _fill(self, block: Block, group: Group, chunk: Sequence[Unit], side: bool) -> None:
        inside = []
        for unit in chunk:
            if unit not in group.side:
                inside.append(Unit(unit.position, unit.step, unit.inputs, unit.outputs, ALWAYS, unit.choice))
            elif group.side[unit][0] is side:
                formula = group.side[unit][1]
                inside.append(Unit(unit.position, unit.step, unit.inputs, unit.outputs, formula, unit.choice))
        if not inside:
            return
        known = dict(self._known)
        if len(group.test) == 1 and len(group.test[0]) == 1:
            known[group.test[0][0][0]] = side
        Scheduler(block, inside, known).run()


def _without(formula: Formula, literals: Iterable[Literal]) -> Formula:
    gone = set(literals)
    return tuple(tuple(literal for literal in path if literal not in gone) for path in formula)
