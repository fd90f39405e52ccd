# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Merging units never makes a cycle, and is refused only where it would."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from graphc.passes.graph import _clusters
from graphc.passes.graph._clusters import UnitGraph


class Plain:
    """The same by search: units are sets of nodes, edges are those of the nodes."""

    def __init__(self) -> None:
        self.operands: list[list[int]] = []
        self.group: list[int] = []

    def add(self, operands: list[int]) -> None:
        self.group.append(len(self.group))
        self.operands.append(operands)

    def _successors(self, group: int) -> set[int]:
        found = {
            self.group[node]
            for node, operands in enumerate(self.operands)
            if any(self.group[operand] == group for operand in operands)
        }
        return found - {group}

    def reaches_through_another(self, a: int, b: int) -> bool:
        """Whether a path of at least two edges leads from a to b."""
        ready = self._successors(a) - {b}
        seen = set(ready)
        while ready:
            successors = self._successors(ready.pop())
            if b in successors:
                return True
            ready |= successors - seen
            seen |= successors
        return False

    def can_merge(self, a: int, b: int) -> bool:
        a, b = self.group[a], self.group[b]
        return a == b or not (self.reaches_through_another(a, b) or self.reaches_through_another(b, a))

    def merge(self, a: int, b: int) -> None:
        a, b = self.group[a], self.group[b]
        self.group = [a if group == b else group for group in self.group]


@st.composite
def programs(draw):
    """Operations of a graph in order: ("add", operands) and ("merge", a, b)."""
    steps, nodes = [("add", [])], 1
    for _ in range(draw(st.integers(1, 25))):
        node = st.integers(0, nodes - 1)
        if draw(st.booleans()):
            steps.append(("add", draw(st.lists(node, max_size=3))))
            nodes += 1
        else:
            steps.append(("merge", draw(node), draw(node)))
    return steps


@given(programs(), st.sampled_from([1, 3, 1 << 60]))
def test_agrees_with_search(steps, distance):
    # Labels that are close together are given anew again and again.
    with patch.multiple(_clusters, _FAR=distance, _NEAR=min(distance, 1 << 20)):
        compare(steps)


def compare(steps):
    units, plain = UnitGraph(), Plain()
    for kind, *rest in steps:
        if kind == "add":
            assert units.add(rest[0]) == len(plain.group)
            plain.add(rest[0])
            continue
        a, b = rest
        allowed = units.can_merge(a, b)
        assert allowed == plain.can_merge(a, b)
        if allowed:
            assert units.merge(a, b) == units.find(a) == units.find(b)
            plain.merge(a, b)
    nodes = range(len(plain.group))
    for a in nodes:
        for b in nodes:
            assert (units.find(a) == units.find(b)) == (plain.group[a] == plain.group[b])
            assert units.can_merge(a, b) == plain.can_merge(a, b)


def test_a_diamond_merges_from_one_side_only():
    units = UnitGraph()
    top = units.add([])
    left, right = units.add([top]), units.add([top])
    bottom = units.add([left, right])
    assert not units.can_merge(top, bottom)
    units.merge(top, left)
    assert not units.can_merge(top, bottom)
    assert units.can_merge(left, right)
    units.merge(left, right)
    assert units.can_merge(top, bottom)


def test_a_long_chain_of_merges():
    units = UnitGraph()
    nodes = [units.add([])]
    for _ in range(2000):
        nodes.append(units.add([nodes[-1]]))
        assert units.can_merge(nodes[-2], nodes[-1])
        units.merge(nodes[-2], nodes[-1])
    assert len({units.find(node) for node in nodes}) == 1
