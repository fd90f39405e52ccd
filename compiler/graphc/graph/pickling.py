# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pickles and deep copies of graphs of any depth.

Nodes that refer to each other would be written one inside the other, and exceed the recursion limit. So a
computed variable is written as a place in a table, which has the nodes one after the other. The table of a
node is found again while something writes it, such as the memory of a pickler: variables that are written
together have tables in common, and what they share is one object when it is read again. The tables are used
for nothing else, and vanish with what refers to them.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

from graphc.graph.basic import Apply, Variable
from graphc.graph.traversal import toposort

_Node = TypeVar("_Node", Apply, Variable)
# What a node or variable is read again from, but for what the table has.
_State = dict[str, object]
_Row = tuple[type[Apply], _State, list[int], list[tuple[type[Variable], _State]]]


class _Tables(threading.local):
    """The table of each node that a table of this thread has."""

    def __init__(self) -> None:
        self.of: WeakKeyDictionary[Apply, ref[NodeTable]] = WeakKeyDictionary()

    def find(self, node: Apply) -> NodeTable | None:
        found = self.of.get(node)
        return None if found is None else found()


_tables = _Tables()


class NodeTable:
    """Nodes in an order in which they can run.

    Args:
        nodes: applications; what they read is computed by earlier ones, or is a root, or in another table.
    """

    def __init__(self, nodes: Sequence[Apply]) -> None:
        self.variables: list[Variable] = []
        self.places: dict[Variable, int] = {}
        self._nodes = list(nodes)
        own = set(self._nodes)
        for node in self._nodes:
            for v in node.inputs:
                if v.owner not in own:
                    self._place(v)
        self._given = len(self.variables)
        for node in self._nodes:
            for v in node.outputs:
                self._place(v)

    def _place(self, v: Variable) -> None:
        if v not in self.places:
            self.places[v] = len(self.variables)
            self.variables.append(v)

    def __reduce__(self) -> tuple[Callable[..., list[Variable]], tuple[list[Variable], list[_Row]]]:
        rows = [
            (
                type(node),
                _state(node, ("inputs", "outputs")),
                [self.places[v] for v in node.inputs],
                [
                    (type(v), _state(v, ("owner", "index", "_compiled", "_reads", "_updates")))
                    for v in node.outputs
                ],
            )
            for node in self._nodes
        ]
        return _read, (self.variables[: self._given], rows)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Variable]:
        given, rows = copy.deepcopy(self.__reduce__()[1], memo)
        # A shared variable whose update reads it leads back here; then the copy has been made meanwhile.
        if id(self) not in memo:
            memo[id(self)] = _read(given, rows)
        found: list[Variable] = memo[id(self)]
        return found


def _state(x: Variable | Apply, without: Sequence[str]) -> _State:
    return {key: value for key, value in vars(x).items() if key not in without}


def _made(kind: type[_Node], state: _State) -> _Node:
    made = kind.__new__(kind)
    made.__dict__.update(state)
    return made


def _read(given: list[Variable], rows: list[_Row]) -> list[Variable]:
    """The variables of a table."""
    variables = list(given)
    for kind, state, operands, outputs in rows:
        node = _made(kind, state)
        node.inputs = [variables[i] for i in operands]
        node.outputs = [_made(*output) for output in outputs]
        for i, v in enumerate(node.outputs):
            v.owner, v.index = node, i
        variables.extend(node.outputs)
    return variables


def reduced(v: Variable) -> tuple[object, ...]:
    """Reduced form of a variable that is computed by a node: see `object.__reduce__`."""
    assert v.owner is not None
    table = _tables.find(v.owner)
    if table is None:
        nodes = [node for node in toposort([v]) if _tables.find(node) is None]
        table = NodeTable(nodes)
        for node in nodes:
            _tables.of[node] = ref(table)
    return _pick, (table, table.places[v])


def _pick(variables: list[Variable], place: int) -> Variable:
    return variables[place]


Variable._reduced = reduced
