# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Units of a dependence graph that may be merged as long as no cycle arises.

The data structure behind the fusion pass. Every operation starts as a unit of its own; `merge` joins two
units when no path leads from one to the other through a third. Ancestor and descendant sets are integers used
as bit sets, so a merge costs a few machine words per affected unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class UnitGraph:
    """A directed acyclic graph of mergeable units."""

    def __init__(self) -> None:
        self._ancestors: list[int] = []
        self._descendants: list[int] = []
        self._leader: list[int] = []

    def add(self, operands: Iterable[int]) -> int:
        """Adds a unit that depends on the units of the given node ids; returns its node id."""
        node = len(self._leader)
        ancestors = 0
        for operand in operands:
            unit = self.find(operand)
            ancestors |= self._ancestors[unit] | 1 << unit
        self._leader.append(node)
        self._ancestors.append(ancestors)
        self._descendants.append(0)
        for unit in _bits(ancestors):
            self._descendants[unit] |= 1 << node
        return node

    def find(self, node: int) -> int:
        """The unit a node belongs to."""
        while self._leader[node] != node:
            self._leader[node] = self._leader[self._leader[node]]
            node = self._leader[node]
        return node

    def can_merge(self, a: int, b: int) -> bool:
        """Whether the units of two nodes have no path between them through another unit."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        return not (self._descendants[a] & self._ancestors[b] or self._descendants[b] & self._ancestors[a])

    def merge(self, a: int, b: int) -> int:
        """Joins two units for which `can_merge` holds; returns the leader."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return a
        both = 1 << a | 1 << b
        ancestors = (self._ancestors[a] | self._ancestors[b]) & ~both
        descendants = (self._descendants[a] | self._descendants[b]) & ~both
        self._leader[b] = a
        self._ancestors[a], self._descendants[a] = ancestors, descendants
        upward, downward = ancestors | 1 << a, descendants | 1 << a
        for unit in _bits(descendants):
            self._ancestors[unit] = (self._ancestors[unit] & ~(1 << b)) | upward
        for unit in _bits(ancestors):
            self._descendants[unit] = (self._descendants[unit] & ~(1 << b)) | downward
        return a
