# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which the operations of a block are lowered.

A unit is a fused cluster or one operation. Units come in dependence order; a check comes before everything
that follows it in the source, so that no loop runs on sizes or indices a failing check would have refused.
What computes a value that is written to a buffer comes after the buffer (and so after the checks before
it), unless the buffer needs the value. What computes a new row of a scan comes after the checks of the body:
memory is written when it is known that what is written fits.

A destination is passed on to what its value is made from: of `s / n`, written to a buffer, also the sum `s`
is computed there. It is passed on along one path: of `s + t` one operand alone is there, and what that one is
made from. `Destinations.lend` holds it, whoever asks first.

The order of a block's units decides how much is in use at once. A gradient's products with what was kept of
the forward pass, for example, are read by nobody but the caller: done as soon as their operands are there,
they free these; done at the end, every operand is kept until then.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from graphc.ir.kinds import PER_ELEMENT, REDUCTIONS, static_shape
from graphc.ir.scan_view import is_trace, new_rows_of
from graphc.ir.views import COUNTS, GATHERS, INLINED, RENAMES, UPDATES
from graphc.ir.walk import definition, inputs_of
from graphc_dialects._mlir import ir
from graphc_dialects.check import NAME as CHECK
from graphc_dialects.scan_verify import DECLARATIONS
from graphc_dialects.write import is_write, reads_buffer, root_of

# Operations whose result is their first operand's memory.
ALIASES = frozenset({*INLINED, *RENAMES})
# What stands for a size that is not known; only the comparison of sums counts.
UNKNOWN_SIZE = 512


class Liveness:
    """Elements in use while the units of a block are done one after the other.

    Args:
        members: the operations of each unit.
        inputs: what each operation reads.
        kept: values that live in memory of the caller, such as results.
    """

    def __init__(
        self,
        members: Mapping[tuple[str, int], Sequence[ir.Operation]],
        inputs: Mapping[ir.Operation, Sequence[ir.Value]],
        kept: Sequence[ir.Value],
    ) -> None:
        self._kept = {root(value) for value in kept}
        self._weight: dict[ir.Value, int] = {}
        self._readers: dict[ir.Value, set[Any]] = {}
        self._made: dict[tuple[str, int], list[ir.Value]] = {}
        self._read: dict[tuple[str, int], set[ir.Value]] = {}
        for unit, operations in members.items():
            self._made[unit] = [r for op in operations for r in op.results if self._takes_memory(op, r)]
        for unit, operations in members.items():
            inside = {result for op in operations for result in op.results}
            outside = {x for op in operations for x in inputs[op]} - inside
            self._read[unit] = {value for value in map(root, outside) if value in self._weight}
            for value in self._read[unit]:
                self._readers[value].add(unit)
        for unit, values in self._made.items():
            # What nobody outside reads stays in registers.
            self._made[unit] = [value for value in values if self._readers[value]]

    def _takes_memory(self, op: ir.Operation, result: ir.Value) -> bool:
        if op.name in ALIASES or not isinstance(result.type, ir.RankedTensorType):
            return False
        if result in self._kept:
            return False
        self._weight[result] = _elements(result)
        self._readers[result] = set()
        return True

    def growth(self, unit: tuple[str, int]) -> int:
        """Elements in use after a unit less those before it, if it is done next."""
        made = sum(self._weight[value] for value in self._made[unit])
        freed = sum(self._weight[value] for value in self._read[unit] if self._readers[value] == {unit})
        return made - freed

    def rank(self, unit: tuple[str, int]) -> int:
        """-1 for units that free memory, 0 for those after which as much is in use, 1 for others.

        A sum of what nobody else reads any more, for example, comes before a product that needs as much as it
        frees: else its operand is kept until the end of all such products. A few elements do not count.
        """
        growth = self.growth(unit)
        return 1 if growth > 0 else -1 if growth <= -UNKNOWN_SIZE else 0

    def done(self, unit: tuple[str, int]) -> list[Any]:
        """Says that a unit is done; returns the units whose growth is another now."""
        changed: list[ir.Type] = []
        for value in self._read[unit]:
            readers = self._readers[value]
            readers.discard(unit)
            if len(readers) == 1:
                changed.extend(readers)
        return changed


def root(value: ir.Value) -> ir.Value:
    """The value whose memory a value is part of."""
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name not in ALIASES or owner.name in COUNTS:
            return value
        value = owner.operands[0]


def _elements(value: ir.Value) -> int:
    return prod(UNKNOWN_SIZE if size is None else size for size in static_shape(value))


def heirs(value: ir.Value) -> list[ir.Value]:
    """The values that take over a value's memory, one from the other, the last one at the end."""
    found = []
    following = successor(value)
    while following is not None:
        found.append(following)
        following = successor(following)
    return found


def successor(value: ir.Value) -> ir.Value | None:
    """The value that takes over the memory of this one, or None.

    It is the update of a value that has no other reader; or of the elementwise results of a cluster that is
    the only reader, and reads each element where it writes it, the one that is written to a buffer.
    """
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    users = _only_readers(value, owner.operation.block)
    if not users:
        return None
    if len(users) == 1 and users[0].name in UPDATES:
        read_once = list(users[0].operands).count(value) == 1
        return users[0].results[0] if read_once and users[0].operands[0] == value else None
    number = _cluster(users[0])
    if number is None or _cluster(owner.operation) == number or owner.name in INLINED:
        return None
    if any(op.name in REDUCTIONS or op.name in GATHERS for op in users):
        return None
    if any(list(op.results[0].type.shape) != list(value.type.shape) for op in users):
        return None
    return _written(users, value)


def _only_readers(value: ir.Value, block: ir.Block) -> list[ir.Operation]:
    """The operation, or the operations of one cluster, that alone read a value, in its block; else none.

    The first reader that does not fit ends the search: a number may be read by every part of a join.
    """
    users: dict[ir.Operation, None] = {}
    number = None
    for use in value.uses:
        op = use.owner.operation
        if op in users:
            continue
        if op.block != block or (users and (number is None or _cluster(op) != number)):
            return []
        if not users:
            number = _cluster(op)
        users[op] = None
    return list(users)


def computed_with(value: ir.Value) -> list[ir.Value]:
    """Results of the operations that take part in computing a value in memory that is given beforehand."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return []
    if reads_buffer(owner):
        return [root_of(owner.operands[0]).results[0]]
    if is_trace(owner):
        return [owner.operands[0]]
    found = [value]
    for x in _read_with(owner):
        following = successor(x)
        if following is not None and following == value:
            found += computed_with(x)
    return found


def _read_with(op: ir.Operation) -> list[ir.Value]:
    """Operands of an operation, or of the cluster that it is the last of."""
    number = _cluster(op.operation)
    found: dict[ir.Value, None] = {}
    pending = [op.operation]
    seen = set(pending)
    while pending:
        for x in pending.pop().operands:
            made = definition(x)
            if made is None:
                continue
            if number is None or _cluster(made) != number:
                found[x] = None
            elif made not in seen:
                seen.add(made)
                pending.append(made)
    return list(found)


def _written(pending: list[ir.Operation], value: ir.Value) -> ir.Value | None:
    """The first result of members of a cluster that is written to a buffer, if it has the value's type."""
    number = _cluster(pending[0])
    seen = set(pending)
    while pending:
        op = pending.pop(0)
        for use in op.results[0].uses:
            user = use.owner.operation
            if is_write(user) and op.name not in REDUCTIONS:
                return op.results[0] if op.results[0].type == value.type else None
            if _cluster(user) == number and user not in seen:
                seen.add(user)
                pending.append(user)
    return None


def _cluster(op: ir.Operation) -> int | None:
    attributes = op.attributes
    return ir.IntegerAttr(attributes["cluster"]).value if "cluster" in attributes else None


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
        self._inputs = list(map(inputs_of, self._operations))
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
        return op.name in REDUCTIONS or op.name in PER_ELEMENT

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
        inputs = dict(zip(self._operations, self._inputs, strict=True))
        liveness = None if kept is None else Liveness(self._members, inputs, kept)

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
            operands = self._inputs[number]
            if len(op.regions) and len(op.results):
                operands = [*operands, *self._extra.get(op.results[0], ())]
            wanted = needs.setdefault(unit, set())
            wanted |= {made_by[x] for x in operands if x in made_by}
            if last_check is not None:
                wanted.add(last_check)
            wanted.discard(unit)
            made_by.update((result, unit) for result in op.results)
            if op.name == CHECK:
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
    while (op := definition(value)) is not None and op.name in RENAMES:
        value = op.operands[0]
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
    cluster = _cluster(op)
    return ("single" if Units.is_loop(op) else "op", number) if cluster is None else ("cluster", cluster)
