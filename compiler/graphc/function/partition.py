# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition of a graph into nodes that run together as one thunk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

from graphc.emit.conditionals import obstacle
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.demand import Demands, is_conditional, sides
from graphc.graph.function_graph import FunctionGraph

Group = tuple[bool, list[Apply]]
DemandOf = Callable[[Apply], Hashable]


def _no_demand(node: Apply) -> Hashable:
    return None


def partition(
    fgraph: FunctionGraph, native: Callable[[Apply], bool], demand: DemandOf = _no_demand
) -> list[Group]:
    """Split the nodes into groups that run one after the other, each wholly native or wholly Python.

    A node's stage is the number of changes of kind on the longest way to it. Nodes of one stage are of one
    kind and need only earlier stages or each other, so that a stage is as large as it can be. One that
    overwrites memory comes after those that read it. Native nodes of different demand are in different
    groups, and count as a change of kind, so that a group computes nothing that is not needed.

    Args:
        fgraph: the graph.
        native: whether a node is compiled.
        demand: when a node is needed.

    Returns:
        Pairs (native, nodes), in an order in which they can run.
    """
    stage: dict[Apply, int] = {}
    groups: dict[tuple[int, Hashable], list[Apply]] = {}
    for node in fgraph.nodes:
        kind = native(node)
        # Native groups have even numbers, so that a root of the graph starts in the first group of its kind.
        number = 0 if kind else 1
        needed = demand(node) if kind else None
        earlier = [v.owner for v in node.inputs] + fgraph.destruction.before.get(node, [])
        for other in earlier:
            if other in stage:
                before = stage[other]
                if before % 2 == number % 2:
                    before += 2 * (kind and demand(other) != needed)
                else:
                    before += 1
                number = max(number, before)
        stage[node] = number
        groups.setdefault((number, needed), []).append(node)
    return [(key[0] % 2 == 0, groups[key]) for key in sorted(groups, key=lambda key: key[0])]


class LazyDemands(Demands):
    """Demands where only some nodes compute what they choose from as they need it.

    Args:
        nodes, outputs: as in `Demands`.
        lazy: the nodes whose thunks are lazy. Of one that is no `IfElse`, each input is needed for itself.
    """

    def __init__(self, nodes: Sequence[Apply], outputs: Iterable[Variable], lazy: Collection[Apply]) -> None:
        self._lazy = lazy
        super().__init__(nodes, outputs)

    def _visit(self, node: Apply) -> None:
        if node in self._lazy and is_conditional(node):
            super()._visit(node)
            return
        needed = self.sum(use for v in node.outputs for use in self._uses.get(v, ()))
        self._nodes[node] = needed
        self._variables.update(dict.fromkeys(node.outputs, needed))
        for i, x in enumerate(node.inputs):
            # A literal without complement: whether the thunk asks for this input.
            asked: Any = (node, i)
            self._use(x, self.where(needed, asked, True) if node in self._lazy else needed)

    def key(self, node: Apply) -> Hashable:
        """The key that two nodes share if they are needed in the same calls."""
        needed = self.of_node(node)
        return node if needed.unknown else needed


def segment(
    fgraph: FunctionGraph, nodes: Sequence[Apply], is_argument: Callable[[Any], bool]
) -> FunctionGraph:
    """The graph of a group of nodes: what they read from others to what others read of them.

    Args:
        fgraph: the graph that they belong to.
        nodes: the group.
        is_argument: which constants are inputs, too.
    """
    members = set(nodes)
    reads = dict.fromkeys(
        v
        for node in nodes
        for v in node.inputs
        if v.owner not in members and (not isinstance(v, Constant) or is_argument(v))
    )
    writes = [
        v
        for node in nodes
        for v in node.outputs
        if any(client not in members for client, _ in fgraph.clients[v])
    ]
    return FunctionGraph(list(reads), writes)


def lazy_groups(
    fgraph: FunctionGraph, native: Callable[[Apply], bool], lazy: dict[Apply, str]
) -> tuple[list[Group], LazyDemands | None]:
    """A partition by demand.

    An `IfElse` whose branches lie in its own native group is compiled with them. Another one has to be lazy.

    Args:
        fgraph: the graph.
        native: whether a node is compiled, if it is not in ``lazy``.
        lazy: why nodes have lazy thunks; gains each `IfElse` that has to have one.

    Returns:
        The groups, and when nodes are needed; None if all are in every call.
    """
    conditionals = [node for node in fgraph.nodes if is_conditional(node)]
    every = LazyDemands(fgraph.nodes, fgraph.outputs, {*lazy, *conditionals}) if conditionals else None

    def compiled(node: Apply) -> bool:
        return node not in lazy and native(node)

    while True:
        demands = LazyDemands(fgraph.nodes, fgraph.outputs, {*lazy}) if lazy else None
        groups = partition(fgraph, compiled, _no_demand if demands is None else demands.key)
        split = {} if every is None else _split(groups, conditionals, every, demands)
        split |= {node: _OF_LAZY for node in conditionals if _chooses_of(node, lazy)}
        split = {node: why for node, why in split.items() if node not in lazy}
        if not split:
            split = _without_order(fgraph, groups)
        if not split:
            return groups, demands
        lazy.update(split)


_OF_LAZY = "it chooses between outputs of a lazy op, which computes those that are needed"


def _chooses_of(node: Apply, lazy: Collection[Apply]) -> bool:
    """True if an `IfElse` chooses between outputs of one node that computes them as they are needed."""
    pairs = (sides(node, k) for k in range(len(node.outputs)))
    return any(a is not b and a.owner is b.owner and a.owner in lazy for a, b in pairs)


def _split(
    groups: list[Group], conditionals: list[Apply], every: LazyDemands, demands: LazyDemands | None
) -> dict[Apply, str]:
    """Conditionals that govern a node in another group than their own, or in one that runs in Python; why."""
    group_of = {node: i if is_native else -1 for i, (is_native, nodes) in enumerate(groups) for node in nodes}
    governed: dict[Any, dict[int, Apply]] = {}
    apart = "it decides about parts that are compiled for themselves"
    for node, group in group_of.items():
        needed = every.of_node(node)
        if needed.unknown:
            return dict.fromkeys(conditionals, apart)
        known = frozenset() if demands is None else _conditions(demands, node)
        for condition in _conditions(every, node) - known:
            governed.setdefault(condition, {}).setdefault(group, node)
    found = {}
    for node in conditionals:
        nodes = governed.get(node.inputs[0], {})
        if not nodes.keys() <= {group_of[node]} - {-1}:
            found[node] = f"it decides about {nodes[-1].op}, which runs in Python" if -1 in nodes else apart
    return found


def _without_order(fgraph: FunctionGraph, groups: list[Group]) -> dict[Apply, str]:
    """Conditionals of native groups that no order of nodes suits, and why."""
    found: dict[Apply, str] = {}
    for native, nodes in groups:
        conditionals = list(filter(is_conditional, nodes)) if native else []
        why = obstacle(segment(fgraph, nodes, lambda v: False)) if conditionals else None
        if why is not None:
            found.update(dict.fromkeys(conditionals, why))
    return found


def _conditions(demands: LazyDemands, node: Apply) -> frozenset[Variable]:
    """The conditions that decide whether a node is needed."""
    literals = demands.of_node(node).literals
    return frozenset(condition for product in literals for condition, _ in product)
