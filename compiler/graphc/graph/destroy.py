# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Overwriting of inputs: analysis of ops with ``destroy_map`` and ``view_map``.

An op with ``destroy_map = {0: [1]}`` computes output 0 in the memory of input 1; one with
``view_map = {0: [0]}`` returns a view of input 0. A variable's *roots* are the variables whose memory it may
share: itself, or those of the inputs that it is a view of. What an op computes in place is a root of its own:
a new value, though in old memory. A graph is consistent if

* a root is overwritten by at most one node, once,
* that node does not read the memory through another of its inputs, unless the op says that it may, by lists
  of pairs (overwritten input, other input): ``destroyhandler_tolerate_same`` for the same variable,
  ``destroyhandler_tolerate_aliased`` for views of it,
* neither a constant nor an output of the graph is overwritten,
* all others that read the memory can run before.

These are the rules of PyTensor's ``DestroyHandler``. That inputs are overwritten only where the caller allows
it is a matter of functions, see `require_mutable`.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from graphc.errors import InconsistencyError
from graphc.graph.basic import Apply, Constant, Variable, describe
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.function_graph import FunctionGraph


@record()
class Destruction:
    """The overwritten variables of a graph.

    Attributes:
        destroyers: the node that overwrites a root, by the root.
        before: for each node that overwrites, the nodes that read what it overwrites and so run before.
        order: all nodes in an order in which they can run.
    """

    destroyers: dict[Variable, Apply] = field(default_factory=dict)
    before: dict[Apply, list[Apply]] = field(default_factory=dict)
    order: list[Apply] = field(default_factory=list)


def analyse(outputs: Sequence[Variable], nodes: Sequence[Apply]) -> Destruction:
    """Checks a graph and orders its nodes.

    Args:
        outputs: outputs of the graph.
        nodes: its nodes, each after those it needs.

    Raises:
        InconsistencyError: the graph is not consistent; the message names the nodes and their lines.
    """
    if not any(node.op.destroy_map for node in nodes):
        return Destruction(order=list(nodes))
    return _Analysis(outputs, nodes).run()


class _Analysis:
    def __init__(self, outputs: Sequence[Variable], nodes: Sequence[Apply]) -> None:
        self._outputs, self._nodes = outputs, nodes
        self._roots: dict[Variable, frozenset[Variable]] = {}
        self._readers: dict[Variable, list[Apply]] = {}
        for node in nodes:
            for v in dict.fromkeys(node.inputs):
                for root in self._roots_of(v):
                    readers = self._readers.setdefault(root, [])
                    if not readers or readers[-1] is not node:
                        readers.append(node)
            for i, v in enumerate(node.outputs):
                self._roots[v] = self._output_roots(node, i, v)
        self._result = Destruction()

    def run(self) -> Destruction:
        for node in self._nodes:
            for position in _destroyed_positions(node):
                self._destroy(node, position)
        self._check_outputs()
        for root, node in self._result.destroyers.items():
            self._order_readers(root, node)
        self._result.order = self._sorted()
        return self._result

    def _roots_of(self, v: Variable) -> frozenset[Variable]:
        return self._roots.get(v) or frozenset((v,))

    def _output_roots(self, node: Apply, i: int, v: Variable) -> frozenset[Variable]:
        viewed = node.op.view_map.get(i, ())
        return frozenset().union(*(self._roots_of(node.inputs[k]) for k in viewed)) or frozenset((v,))

    def _destroy(self, node: Apply, position: int) -> None:
        v = node.inputs[position]
        for root in sorted(self._roots_of(v), key=str):
            if isinstance(root, Constant):
                raise InconsistencyError(
                    f"{_name(node)} overwrites the constant {root}; let it work on a copy"
                )
            other = self._result.destroyers.get(root)
            if other is not None:
                whom = "twice, through two of its inputs" if other is node else f"as {_name(other)} does"
                raise InconsistencyError(
                    f"{_name(node)} overwrites {_value(root)} {whom}; memory can be overwritten once. "
                    "Let one of them work on a copy"
                )
            self._result.destroyers[root] = node
            self._check_other_inputs(node, position, root)

    def _check_other_inputs(self, node: Apply, position: int, root: Variable) -> None:
        same = getattr(node.op, "destroyhandler_tolerate_same", ())
        aliased = getattr(node.op, "destroyhandler_tolerate_aliased", ())
        for i, v in enumerate(node.inputs):
            if i == position or root not in self._roots_of(v):
                continue
            tolerated = same if v is node.inputs[position] else aliased
            if (position, i) not in tolerated:
                raise InconsistencyError(
                    f"{_name(node)} overwrites its input {position}, {_value(root)}, while it reads the same "
                    f"memory as its input {i}, {v}; give it a copy of one of them"
                )

    def _check_outputs(self) -> None:
        for i, v in enumerate(self._outputs):
            for root in self._roots_of(v):
                node = self._result.destroyers.get(root)
                if node is not None:
                    what = "is" if v is root else f"is a view of {root}, which is"
                    raise InconsistencyError(
                        f"output {i} of the graph, {v}, {what} overwritten by {_name(node)}; return a copy "
                        "of it"
                    )

    def _order_readers(self, root: Variable, destroyer: Apply) -> None:
        """Puts those who read a root before the one who overwrites it.

        Raises:
            InconsistencyError: one of them needs what the destroyer computes.
        """
        readers = [node for node in self._readers.get(root, ()) if node is not destroyer]
        after = self._dependents(destroyer)
        for node in readers:
            if node in after:
                raise InconsistencyError(
                    f"{_name(node)} reads {_value(root)} after {_name(destroyer)} has overwritten it, whose "
                    "result it needs; let one of them work on a copy"
                )
        known = self._result.before.setdefault(destroyer, [])
        known += [node for node in readers if node not in known]

    def _dependents(self, node: Apply) -> set[Apply]:
        """The nodes that need the results of a node."""
        found, reached = set(), set(node.outputs)
        for other in self._nodes:
            if any(v in reached for v in other.inputs):
                found.add(other)
                reached.update(other.outputs)
        return found

    def _sorted(self) -> list[Apply]:
        """Kahn's algorithm, in the given order where there is a choice.

        Raises:
            InconsistencyError: two nodes would each have to run before the other.
        """
        number = {node: i for i, node in enumerate(self._nodes)}
        needs = {
            node: {v.owner for v in node.inputs if v.owner in number} | set(self._result.before.get(node, ()))
            for node in self._nodes
        }
        users: dict[Apply, list[Apply]] = {node: [] for node in self._nodes}
        for node, wanted in needs.items():
            for other in wanted:
                users[other].append(node)
        missing = {node: len(wanted) for node, wanted in needs.items()}
        ready = [number[node] for node, count in missing.items() if not count]
        heapq.heapify(ready)
        order = []
        while ready:
            node = self._nodes[heapq.heappop(ready)]
            order.append(node)
            for user in users[node]:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, number[user])
        if len(order) < len(self._nodes):
            self._refuse_cycle(needs, set(self._nodes) - set(order))
        return order

    def _refuse_cycle(self, needs: dict[Apply, set[Apply]], stuck: set[Apply]) -> None:
        """Names the destroyers on a cycle."""
        node = next(node for node in self._nodes if node in stuck)
        path: list[Apply] = []
        while node not in path:
            path.append(node)
            node = next(other for other in self._nodes if other in needs[node] and other in stuck)
        cycle = path[path.index(node) :]
        guilty = [node for node in cycle if node in self._result.before]
        listed = "; ".join(_name(node) for node in guilty)
        raise InconsistencyError(
            f"these nodes overwrite what others still have to read, each waiting for the other: {listed}; "
            "let one of them work on a copy"
        )


def require_mutable(graph: FunctionGraph, mutable: Collection[Variable]) -> None:
    """Refuses a graph that overwrites an input that is not in ``mutable``, here or in the body of a loop.

    Raises:
        InconsistencyError: names the input, and the node with its line.
    """
    for root, node in graph.destruction.destroyers.items():
        if root in graph.inputs and root not in mutable:
            shared = hasattr(root, "container")
            allow = "" if shared else f", or allow it with In({root}, mutable=True)"
            what = "the shared variable" if shared else "the input"
            raise InconsistencyError(
                f"{_name(node)} overwrites {what} {root}{describe(root.location)}, which must not change; "
                f"let it work on a copy{allow}"
            )
    for node in graph.nodes:
        inner = getattr(node.op, "compiled_graph", None)
        if inner is not None:
            require_mutable(inner, ())


def _destroyed_positions(node: Apply) -> list[int]:
    """The inputs that a node overwrites; each once, though several outputs may name it."""
    return list(dict.fromkeys(i for positions in node.op.destroy_map.values() for i in positions))


def _name(node: Apply) -> str:
    return f"{node.op}{describe(node.location)}"


def _value(root: Variable) -> str:
    made = f", the result of {_name(root.owner)}" if root.owner is not None else describe(root.location)
    return f"{root}{made}"
