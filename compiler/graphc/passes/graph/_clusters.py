# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Units of a dependence graph that may be merged as long as no cycle arises.

The data structure of the fusion pass. Every operation starts as a unit of its own; `merge` joins two
units when no path leads from one to the other through a third. Units are kept in a topological order, so that
a search for such a path only looks at units between the two. The search goes from both ends in turn and stops
when one side is exhausted: that there is no path is then known, and moving the units of this side is all that
a merge needs to restore the order. Programs are local: with a limit on the search the work grows like their
length.

Source: the two-way search of Haeupler, Kavitha, Mathew, Sen and Tarjan, Incremental Cycle Detection,
Topological Ordering, and Strong Component Maintenance (2012); labels as in Dietz and Sleator, Two Algorithms
for Maintaining Order in a List (1987), in a simple form.
"""

from __future__ import annotations

from collections.abc import Iterable

# Labels of units that follow each other at first, and of units that are put between others.
_FAR, _NEAR = 1 << 60, 1 << 20


class UnitGraph:
    """A directed acyclic graph of mergeable units.

    Args:
        limit: how many units a search may visit on each side before `can_merge` says no; None for any number.

    Attributes:
        visits: how many units all searches have visited so far.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.visits = 0
        self._limit = limit
        self._leader: list[int] = []
        # The order, as a list in which each unit knows its neighbours (None at the ends), and labels that
        # grow along it.
        self._place: list[int] = []
        self._before: list[int | None] = []
        self._after: list[int | None] = []
        self._last: int | None = None
        self._operands: list[set[int]] = []
        self._users: list[set[int]] = []
        self._searched: tuple[int, int, bool, list[int]] | None = None

    def add(self, operands: Iterable[int]) -> int:
        """Adds a unit that depends on the units of the given node ids; returns its node id."""
        node = len(self._leader)
        found = {self.find(operand) for operand in operands}
        self._leader.append(node)
        self._place.append(0 if self._last is None else self._place[self._last] + _FAR)
        self._before.append(self._last)
        self._after.append(None)
        if self._last is not None:
            self._after[self._last] = node
        self._last = node
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
        """True if the units of two nodes have no path between them through another unit."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if self._place[a] > self._place[b]:
            a, b = b, a
        # Units that a leads to, and units that lead to b, in the order in which they are found.
        ahead, back = [a], [b]
        seen_ahead, seen_back = {a}, {b}
        for visited in range(len(self._leader) if self._limit is None else self._limit + 1):
            if visited == len(back):
                self._searched = a, b, False, back[1:]
                return True
            if self._visit(self._operands, back, visited, a, seen_back, seen_ahead):
                return False
            if visited == len(ahead):
                self._searched = a, b, True, ahead[1:]
                return True
            if self._visit(self._users, ahead, visited, b, seen_ahead, seen_back):
                return False
        return False

    def _visit(
        self, edges: list[set[int]], found: list[int], visited: int, goal: int, seen: set[int], met: set[int]
    ) -> bool:
        """Looks at the edges of one more unit of a search; whether it has met the search from the other end.

        Args:
            edges: users, or operands, of each unit.
            found: the units of this search; those that are new come at the end.
            goal: where the other search has started.
            seen: the same units as a set.
            met: those of the other search.
        """
        self.visits += 1
        leader, place = self._leader, self._place
        end = place[goal]
        ahead = place[found[0]] < end
        for node in edges[found[visited]]:
            other = node if leader[node] == node else self.find(node)
            if other in met:
                if other == goal and not visited:
                    continue  # an edge between the two
                return True
            if other not in seen and (place[other] < end) == ahead:
                seen.add(other)
                found.append(other)
        return False

    def merge(self, a: int, b: int) -> int:
        """Joins two units for which `can_merge` holds; returns the leader."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        if self._place[a] > self._place[b]:
            a, b = b, a
        known = self._searched
        if known is None or known[:2] != (a, b):
            if not self.can_merge(a, b):
                raise ValueError(f"units {a} and {b} cannot be merged: a path leads through another one")
            known = self._searched
            assert known is not None
        _, _, ahead, between = known
        self._searched = None
        between.sort(key=self._place.__getitem__)
        if ahead:  # what needs a comes after b
            for unit in (a, *between):
                self._unlink(unit)
            self._link([a, *between], b, self._after[b])
            self._unlink(b)
        else:  # what b needs comes before a
            for unit in (b, *between):
                self._unlink(unit)
            self._link(between, self._before[a], a)
        self._leader[b] = a
        for edges in (self._operands, self._users):
            small, large = sorted((edges[a], edges[b]), key=len)
            large |= small
            large -= {a, b}
            edges[a], edges[b] = large, set()
        return a

    # -- the order -------------------------------------------------------------------------------------------

    def _unlink(self, unit: int) -> None:
        before, after = self._before[unit], self._after[unit]
        if before is not None:
            self._after[before] = after
        if after is None:
            self._last = before
        else:
            self._before[after] = before

    def _link(self, units: list[int], before: int | None, after: int | None) -> None:
        """Puts units, in this order, between two neighbours, of which one may be missing."""
        last = before
        for unit in units:
            self._before[unit] = last
            if last is not None:
                self._after[last] = unit
            last = unit
        if last is not None:
            self._after[last] = after
        if after is None:
            self._last = last
        else:
            self._before[after] = last
        self._label(units, before, after)

    def _label(self, units: list[int], before: int | None, after: int | None) -> None:
        place, count = self._place, len(units)
        if before is None:
            first = place[after] - _FAR * count if after is not None else 0
            step = _FAR
        elif after is None:
            first, step = place[before] + _FAR, _FAR
        else:
            # Close to one side: more will come into the rest of the gap.
            step = min(_NEAR, (place[after] - place[before]) // (count + 1))
            first = place[before] + step
        if step:
            for i, unit in enumerate(units):
                place[unit] = first + i * step
            return
        at, position = self._last, 0
        while at is not None:
            place[at] = position
            position -= _FAR
            at = self._before[at]
