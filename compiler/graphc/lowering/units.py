# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which the operations of a block are lowered.

A unit is a fused cluster or one operation. Units come in dependence order; a check comes before everything
that follows it in the source, so that no loop runs on sizes or indices a failing check would have refused.
"""

from __future__ import annotations

import heapq
from typing import Any

from graphc.lowering.kinds import REDUCTIONS, is_elementwise
from graphc.passes._walk import captured
from graphc_dialects._mlir import ir

Unit = tuple[str, int]


class Units:
    """The units of one block.

    Args:
        block: a block of graph-stage operations.
        extra: further values that an operation needs, by its first result.

    Attributes:
        clusters: members of each cluster by its number.
    """

    def __init__(self, block: Any, extra: dict[Any, list[Any]]) -> None:
        self._extra = extra
        self._operations = [op.operation for op in block.operations]
        self._members: dict[Unit, list[Any]] = {}
        self.clusters: dict[int, list[Any]] = {}
        self._unit_of: list[Unit] = []
        for number, op in enumerate(self._operations):
            unit = _unit(op, number)
            self._unit_of.append(unit)
            self._members.setdefault(unit, []).append(op)
        self.clusters = {number: ops for (kind, number), ops in self._members.items() if kind == "cluster"}

    @staticmethod
    def is_loop(op: Any) -> bool:
        """Whether an operation is lowered as (part of) a loop over elements."""
        return op.name in REDUCTIONS or is_elementwise(op.name)

    def order(self) -> list[list[Any]]:
        """The members of each unit: Kahn's algorithm, earliest operation first."""
        needs, first = self._needs()
        users: dict[Unit, list[Unit]] = {unit: [] for unit in needs}
        missing = {unit: len(wanted) for unit, wanted in needs.items()}
        for unit, wanted in needs.items():
            for other in wanted:
                users[other].append(unit)
        ready = [(first[unit], unit) for unit, count in missing.items() if not count]
        heapq.heapify(ready)
        order = []
        while ready:
            unit = heapq.heappop(ready)[1]
            order.append(self._members[unit])
            for user in users[unit]:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (first[user], user))
        return order

    def _needs(self) -> tuple[dict[Unit, set[Unit]], dict[Unit, int]]:
        """The units each unit depends on, and the position of its first operation."""
        made_by: dict[Any, Unit] = {}
        needs: dict[Unit, set[Unit]] = {}
        first: dict[Unit, int] = {}
        last_check: Unit | None = None
        for number, (op, unit) in enumerate(zip(self._operations, self._unit_of, strict=True)):
            first.setdefault(unit, number)
            operands = list(op.operands)
            if len(op.regions):
                operands += [*captured(op), *self._extra.get(op.results[0], ())]
            wanted = needs.setdefault(unit, set())
            wanted |= {made_by[x] for x in operands if x in made_by}
            if last_check is not None:
                wanted.add(last_check)
            wanted.discard(unit)
            made_by.update((result, unit) for result in op.results)
            if op.name == "graphc.check":
                last_check = unit
        return needs, first


def _unit(op: Any, number: int) -> Unit:
    if "cluster" in op.attributes:
        return ("cluster", ir.IntegerAttr(op.attributes["cluster"]).value)
    return ("single" if Units.is_loop(op) else "op", number)
