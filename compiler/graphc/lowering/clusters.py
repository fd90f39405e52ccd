# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Units of a dependence graph that may be merged as long as no cycle arises.

The data structure behind the fusion pass. Every operation starts as a unit of its own; `merge` joins two
units when no path leads from one to the other through a third. Units are kept in a topological order, so that
a search for such a path only looks at units between the two; after a merge only the units found there are put
in order again. Programs are local: with a limit on the search the work grows like their length.

Source: the order maintenance of Pearce and Kelly, A Dynamic Topological Sort Algorithm (2006).
"""

from __future__ import annotations

from collections.abc import Iterable


class UnitGraph:
    """A directed acyclic graph of mergeable units.

    Args:
        limit: how many units a search may visit before `can_merge` says no; None for any number.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._leader: list[int] = []
        self._place: list[int] = []
        self._operands: list[set[int]] = []
        self._users: list[set[int]] = []
        self._between: tuple[int, int, list[int], list[int]] | None = None

    def add(self, operands: Iterable[int]) -> int:
        """Adds a unit that depends on the units of the given node ids; returns its node id."""
        node = len(self._leader)
        found = {self.find(operand) for operand in operands}
        self._leader.append(node)
        self._place.append(node)
        self._operands.append(found)
        self._users.append(set())
        for operand in found:
            self._users[operand].add(node)
        return node

    def find(self, node: int) -> int:
        """The unit a node belongs to."""
        leader = self._leader
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    def can_merge(self, a: int, b: int) -> bool:
        """Whether the units of two nodes have no path between them through another unit."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if self._place[a] > self._place[b]:
            a, b = b, a
        behind = self._reach(self._users, a, b)
        if behind is None:
            return False
        before = self._reach(self._operands, b, a)
        if before is None:
            return False
        self._between = a, b, before, behind
        return True

    def _reach(self, edges: list[set[int]], start: int, goal: int) -> list[int] | None:
        """The units between the places of two units that edges lead to from the first one.

        None if one of them leads on to the goal, or if there are too many.
        """
        low, high = sorted((self._place[start], self._place[goal]))
        limit = len(self._leader) if self._limit is None else self._limit
        found: list[int] = []
        seen = {start, goal}
        pending = [start]
        while pending:
            unit = pending.pop()
            for node in edges[unit]:
                other = self.find(node)
                if other == goal and unit != start:
                    return None
                if other in seen or not low < self._place[other] < high:
                    continue
                seen.add(other)
                found.append(other)
                pending.append(other)
                if len(found) > limit:
                    return None
        return found

    def merge(self, a: int, b: int) -> int:
        """Joins two units for which `can_merge` holds; returns the leader."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self._place[a] > self._place[b]:
            a, b = b, a
        known = self._between
        if known is None or known[:2] != (a, b):
            if not self.can_merge(a, b):
                raise ValueError(f"units {a} and {b} cannot be merged: a path leads through another one")
            known = self._between
            assert known is not None
        _, _, before, behind = known
        self._between = None
        place = self._place
        order = [*sorted(before, key=place.__getitem__), a, *sorted(behind, key=place.__getitem__)]
        # One place more than units: b is no longer one of them.
        free = sorted(place[unit] for unit in (*order, b))
        for unit, position in zip(order, free, strict=False):
            place[unit] = position
        self._leader[b] = a
        for edges in (self._operands, self._users):
            small, large = sorted((edges[a], edges[b]), key=len)
            large |= small
            large -= {a, b}
            edges[a], edges[b] = large, set()
        return a
