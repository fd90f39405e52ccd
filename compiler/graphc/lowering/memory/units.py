# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which the operations of a block are lowered.

A unit is a fused cluster or one operation. Units come in dependence order; a check comes before everything
that follows it in the source, so that no loop runs on sizes or indices a failing check would have refused.
What computes a value that is written to a buffer comes after the buffer (and so after the checks before
it), unless the buffer needs the value. What computes a new row of a scan comes after the checks of the body:
memory is written when it is known that what is written fits.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from graphc.ir.kinds import REDUCTIONS, is_elementwise
from graphc.ir.scan_view import new_rows_of
from graphc.ir.views import RENAMES
from graphc.ir.walk import inputs_of
from graphc.lowering.memory.inheritance import computed_with
from graphc.lowering.memory.liveness import Liveness
from graphc_dialects._mlir import ir
from graphc_dialects.check import raises
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.write import is_write, root_of

Unit = tuple[str, int]
# Attribute of functions whose text has the units in the order in which they are to be done.
SCHEDULED = "graphc.scheduled"


class Units:
    """The units of one block.

    Args:
        block: a block of graph-stage operations.
        extra: further values that an operation needs, by its first result.
        after: pairs of operations, of which the first must come after the second.

    Attributes:
        clusters: members of each cluster by its number.
        checked_late: new rows of a scan that a check of the body needs, or comes after; known with the order.
    """

    def __init__(
        self, block: ir.Block, extra: dict[Any, list[Any]], after: Sequence[tuple[Any, Any]] = ()
    ) -> None:
        self._extra = extra
        self._after = after
        self._operations = [op.operation for op in block.operations]
        self._positions = {op: number for number, op in enumerate(self._operations)}
        self._members: dict[Unit, list[ir.Operation]] = {}
        self.checked_late: set[ir.Value] = set()
        self.clusters: dict[int, list[ir.Operation]] = {}
        self._unit_of: list[Unit] = []
        for number, op in enumerate(self._operations):
            unit = _unit(op, number)
            self._unit_of.append(unit)
            self._members.setdefault(unit, []).append(op)
        self.clusters = {number: ops for (kind, number), ops in self._members.items() if kind == "cluster"}

    @staticmethod
    def is_loop(op: ir.Operation) -> bool:
        """True if an operation is lowered as (part of) a loop over elements."""
        return op.name in REDUCTIONS or is_elementwise(op.name)

    def unit_of(self, op: ir.Operation) -> Unit:
        """The unit of an operation of the block."""
        return self._unit_of[self._positions[op]]

    def members_with(self, op: ir.Operation) -> list[ir.Operation]:
        """The operations of an operation's unit."""
        return self._members[self.unit_of(op)]

    def needs(self) -> dict[Unit, set[Unit]]:
        """The units that each unit depends on."""
        return self._needs()[0]

    def order(self, kept: Sequence[ir.Value] | None = None) -> list[list[ir.Operation]]:
        """The members of each unit: Kahn's algorithm, earliest operation first.

        Args:
            kept: values that live in memory of the caller. If given, units after which less memory is in use
                than before come as soon as they can, then those after which it is as much.
        """
        needs, first = self._needs()
        users: dict[Unit, list[Unit]] = {unit: [] for unit in needs}
        missing = {unit: len(wanted) for unit, wanted in needs.items()}
        for unit, wanted in needs.items():
            for other in wanted:
                users[other].append(unit)
        liveness = None if kept is None else Liveness(self._members, kept)

        def priority(unit: Unit) -> tuple[bool, int, int, Unit]:
            # Nothing may come after the terminator, also what has an effect and no result.
            is_end = unit == self._unit_of[-1]
            return is_end, 0 if liveness is None else liveness.rank(unit), first[unit], unit

        ready = [priority(unit) for unit, count in missing.items() if not count]
        heapq.heapify(ready)
        order, done = [], set()
        while ready:
            unit = heapq.heappop(ready)[-1]
            if unit in done:
                continue
            done.add(unit)
            order.append(self._members[unit])
            for user in users[unit]:
                missing[user] -= 1
            changed = [] if liveness is None else liveness.done(unit)
            for user in dict.fromkeys([*users[unit], *changed]):
                if not missing[user] and user not in done:
                    heapq.heappush(ready, priority(user))
        return order

    def _needs(self) -> tuple[dict[Unit, set[Unit]], dict[Unit, int]]:
        """The units each unit depends on, and the position of its first operation."""
        made_by: dict[ir.Value, Unit] = {}
        needs: dict[Unit, set[Unit]] = {}
        first: dict[Unit, int] = {}
        last_check: Unit | None = None
        for number, (op, unit) in enumerate(zip(self._operations, self._unit_of, strict=True)):
            first.setdefault(unit, number)
            operands = inputs_of(op)
            if len(op.regions) and len(op.results):
                operands += self._extra.get(op.results[0], ())
            wanted = needs.setdefault(unit, set())
            wanted |= {made_by[x] for x in operands if x in made_by}
            if last_check is not None:
                wanted.add(last_check)
            wanted.discard(unit)
            made_by.update((result, unit) for result in op.results)
            if raises(op):
                last_check = unit
        for later, earlier in self._after:
            needs[self.unit_of(later)].add(self.unit_of(earlier))
        self._put_buffers_first(needs, made_by)
        if last_check is not None:
            self._put_rows_last(needs, made_by, last_check)
        return needs, first

    def _put_rows_last(
        self, needs: dict[Unit, set[Unit]], made_by: dict[ir.Value, Unit], last_check: Unit
    ) -> None:
        """New rows of a scan come after the checks of its body: one may find that they do not fit."""
        earlier = ancestors(needs, last_check)
        for op in self._operations:
            for value in new_rows_of(op) if op.name in DECLARATIONS else ():
                units = {made_by[x] for x in _computed_in_place(value) if x in made_by}
                if units.isdisjoint(earlier):
                    for unit in units:
                        needs[unit].add(last_check)
                else:
                    self.checked_late.add(value)

    def _put_buffers_first(self, needs: dict[Unit, set[Unit]], made_by: dict[ir.Value, Unit]) -> None:
        reachable: dict[Unit, set[Unit]] = {}
        for op in self._operations:
            if not is_write(op):
                continue
            buffer = made_by.get(op.operands[1])
            root = made_by.get(root_of(op.operands[1]).results[0])
            if buffer is None or root is None:
                continue
            for value in computed_with(op.operands[0]):
                unit = made_by.get(value)
                if unit is None:
                    continue
                if root not in reachable:
                    reachable[root] = ancestors(needs, buffer)
                if unit not in reachable[root]:
                    needs[unit].add(buffer)
                    # Other buffers may come after this unit.
                    reachable = {root: reachable[root]}


def _computed_in_place(value: ir.Value) -> list[ir.Value]:
    """Results of what takes part in computing a value, or what it is a view of, in memory that is given."""
    found = computed_with(value)
    while not isinstance(value.owner, ir.Block) and value.owner.name in RENAMES:
        value = value.owner.operands[0]
        found += computed_with(value)
    return found


def ancestors(needs: dict[Unit, set[Unit]], unit: Unit) -> set[Unit]:
    """A unit and all that it needs."""
    found, pending = {unit}, [unit]
    while pending:
        for other in needs[pending.pop()]:
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def _unit(op: ir.Operation, number: int) -> Unit:
    if "cluster" in op.attributes:
        return ("cluster", ir.IntegerAttr(op.attributes["cluster"]).value)
    return ("single" if Units.is_loop(op) else "op", number)
