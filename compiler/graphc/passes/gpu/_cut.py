# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of two sides operations go to, so that few values have to be moved between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias, TypeVar

# What moving a value costs, where placing an operation on the second side costs 1.
_MOVE = 1_000_000
_ALWAYS = 1 << 60

_Node: TypeAlias = Hashable
_N = TypeVar("_N", bound=Hashable)


def second_side(
    fixed: Mapping[_N, bool],
    values: Iterable[tuple[_N, Iterable[_N]]],
    ties: Iterable[tuple[_N, _N]] = (),
) -> set[_N]:
    """The nodes of the second side; of all ways to move few values, one with few of them.

    A value is moved once in a direction, however many of the other side use it: a minimum cut of a graph in
    which two nodes stand for each value, one for each direction.

    Args:
        fixed: for nodes that have no choice, whether they are on the second side.
        values: what produces each value, and what uses it.
        ties: pairs of nodes that have to be on the same side.

    Source: L. R. Ford and D. R. Fulkerson, "Maximal flow through a network", 1956; augmenting paths of least
    length as in J. Edmonds and R. M. Karp, 1972.
    """
    network = _Network()
    nodes: dict[_N, None] = dict.fromkeys(fixed)
    for number, (producer, users) in enumerate(values):
        others = list(dict.fromkeys(users))
        nodes.update(dict.fromkeys([producer, *others]))
        network.add(producer, ("to", number), _MOVE)
        network.add(("from", number), producer, _MOVE)
        for user in others:
            network.add(("to", number), user, _ALWAYS)
            network.add(user, ("from", number), _ALWAYS)
    for a, b in ties:
        nodes.update(dict.fromkeys([a, b]))
        network.add(a, b, _ALWAYS)
        network.add(b, a, _ALWAYS)
    for node in nodes:
        place = fixed.get(node)
        if place is None:
            network.add(_FIRST, node, 1)
        else:
            edge = (node, _SECOND) if place else (_FIRST, node)
            network.add(edge[0], edge[1], _ALWAYS)
    cut = network.cut()
    return {node for node in nodes if node in cut}


_FIRST, _SECOND = "first", "second"


class _Network:
    """Capacities that are left, by where from and where to."""

    def __init__(self) -> None:
        self._left: dict[_Node, dict[_Node, int]] = {_FIRST: {}, _SECOND: {}}

    def add(self, a: _Node, b: _Node, capacity: int) -> None:
        """Adds an edge."""
        out, back = self._left.setdefault(a, {}), self._left.setdefault(b, {})
        out[b] = out.get(b, 0) + capacity
        back.setdefault(a, 0)

    def cut(self) -> set[_Node]:
        """The nodes that still lead to the second side when nothing more flows there."""
        while self._augment():
            pass
        found: set[_Node] = {_SECOND}
        left: deque[_Node] = deque([_SECOND])
        while left:
            node = left.popleft()
            for other in self._left[node]:
                if other not in found and self._left[other][node]:
                    found.add(other)
                    left.append(other)
        return found

    def _augment(self) -> bool:
        """Lets as much flow as a shortest way takes; whether there was one."""
        came: dict[_Node, _Node] = {_FIRST: _FIRST}
        left: deque[_Node] = deque([_FIRST])
        while left and _SECOND not in came:
            node = left.popleft()
            for other, capacity in self._left[node].items():
                if capacity and other not in came:
                    came[other] = node
                    left.append(other)
        if _SECOND not in came:
            return False
        way: list[_Node] = [_SECOND]
        while way[-1] != _FIRST:
            way.append(came[way[-1]])
        steps = list(zip(way[1:], way[:-1], strict=True))
        amount = min(self._left[a][b] for a, b in steps)
        for a, b in steps:
            self._left[a][b] -= amount
            self._left[b][a] += amount
        return True
