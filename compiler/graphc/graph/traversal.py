# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Walks over graphs. None of them recurses, so depth is limited by memory only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, TypeVar, overload

from graphc.graph.basic import Apply, Constant, Variable, reads_of
from graphc.graph.shared import SharedVariable

_T = TypeVar("_T")


@overload
def walk(
    nodes: Iterable[_T],
    expand: Callable[[_T], Iterable[_T] | None],
    bfs: bool = True,
    hash_fn: Callable = id,
    return_children: Literal[False] = False,
) -> Iterator[_T]: ...
@overload
def walk(
    nodes: Iterable[_T],
    expand: Callable[[_T], Iterable[_T] | None],
    bfs: bool = True,
    hash_fn: Callable = id,
    *,
    return_children: Literal[True],
) -> Iterator[tuple[_T, Iterable[_T] | None]]: ...
def walk(
    nodes: Iterable[_T],
    expand: Callable[[_T], Iterable[_T] | None],
    bfs: bool = True,
    hash_fn: Callable = id,
    return_children: bool = False,
) -> Iterator[_T] | Iterator[tuple[_T, Iterable[_T] | None]]:
    """Visit ``nodes`` and whatever ``expand`` returns for each visited one, each node once.

    Args:
        nodes: where to start.
        expand: the neighbours to visit next; None or nothing ends that branch.
        bfs: breadth first, otherwise depth first.
        hash_fn: what makes two nodes the same.
        return_children: yield pairs of a node and what ``expand`` returned for it.
    """
    queue = deque(nodes)
    pop = queue.popleft if bfs else queue.pop
    seen = set()
    while queue:
        node = pop()
        key = hash_fn(node)
        if key not in seen:
            seen.add(key)
            children = expand(node)
            yield (node, children) if return_children else node
            queue.extend(children or ())


def ancestors(
    variables: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Iterator[Variable]:
    """The variables and everything they are computed from, without looking beyond ``blockers``; depth first,
    the last input of each node before the others, as PyTensor's.

    Examples:
        >>> x = pt.vector("x")
        >>> y = pt.exp(x) + 1
        >>> x in set(graphc.ancestors([y]))
        True
    """
    blocked = set(blockers or ())

    def inputs_of(v: Variable) -> Iterable[Variable] | None:
        return v.owner.inputs if v.owner is not None and v not in blocked else None

    return walk(variables, inputs_of, bfs=False)


variable_ancestors = ancestors


def read_by(
    variables: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Iterator[Variable]:
    """The variables and everything that they were written with, also what simplification has removed since
    (see `graphc.graph.basic.remember`), without looking beyond ``blockers``.
    """
    blocked = set(blockers or ())

    def expand(v: Variable) -> Iterable[Variable]:
        inputs = () if v.owner is None or v in blocked else v.owner.inputs
        return (*inputs, *reads_of(v))

    return walk(variables, expand, bfs=False)


def apply_ancestors(
    variables: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Iterator[Apply]:
    """The nodes that compute ``variables``, each once, without looking beyond ``blockers``."""
    blocked = set(blockers or ())
    seen: set[Apply] = set()
    for v in ancestors(variables, blocked):
        if v.owner is not None and v not in blocked and v.owner not in seen:
            seen.add(v.owner)
            yield v.owner


def graph_inputs(
    variables: Iterable[Variable], blockers: Collection[Variable] | None = None
) -> Iterator[Variable]:
    """The roots (inputs, constants, shared variables) below ``variables``, and the blockers that were met.

    Examples:
        >>> x = pt.vector("x")
        >>> list(graphc.graph.graph_inputs([pt.exp(x)]))
        [x]
    """
    blocked = set(blockers or ())
    return (v for v in ancestors(variables, blocked) if v.owner is None or v in blocked)


def explicit_graph_inputs(graph: Variable | Iterable[Variable]) -> Iterator[Variable]:
    """The roots that a caller must give values for: neither constants nor shared variables.

    Examples:
        >>> x, y = pt.vector("x"), pt.vector("y")
        >>> [v.name for v in graphc.explicit_graph_inputs((x + y) * 2)]
        ['y', 'x']
    """
    outputs = [graph] if isinstance(graph, Variable) else graph
    return (v for v in graph_inputs(outputs) if not isinstance(v, Constant | SharedVariable))


def orphans_between(inputs: Collection[Variable], outputs: Iterable[Variable]) -> Iterator[Variable]:
    """Roots of ``outputs`` that are not among ``inputs``."""
    given = set(inputs)
    return (v for v in graph_inputs(outputs, given) if v.owner is None and v not in given)


def vars_between(inputs: Collection[Variable], outputs: Iterable[Variable]) -> Iterator[Variable]:
    """Every variable met between ``outputs`` and ``inputs``, both included."""
    return ancestors(outputs, inputs)


def toposort(
    outputs: Iterable[Variable | Apply], blockers: Collection[Variable] | None = None
) -> Iterator[Apply]:
    """Nodes that compute ``outputs``, each after the nodes it needs.

    The order depends only on the graph (depth first, inputs from left to right), so equal graphs are ordered
    alike.

    Examples:
        >>> y = pt.exp(pt.vector("x")).sum()
        >>> [str(node.op) for node in graphc.graph.toposort([y])]
        ['exp', 'Sum{axes=[0]}']
    """
    blocked = set(blockers or ())
    done: set[Apply] = set()
    for output in outputs:
        root = output if isinstance(output, Apply) else output.owner
        if root is None or root in done or output in blocked:
            continue
        stack: list[tuple[Apply, Iterator[Variable]]] = [(root, iter(root.inputs))]
        entered = {root}
        while stack:
            node, rest = stack[-1]
            for v in rest:
                parent = v.owner
                if parent is None or parent in done or v in blocked:
                    continue
                if parent in entered:
                    raise ValueError(f"the graph has a cycle through {parent}")
                entered.add(parent)
                stack.append((parent, iter(parent.inputs)))
                break
            else:
                stack.pop()
                done.add(node)
                yield node


def walk_toposort(graphs: Iterable[_T], deps: Callable[[_T], Iterable[_T] | None]) -> Iterator[_T]:
    """Objects of any kind, each after those that ``deps`` says it depends on.

    Args:
        graphs: where to start.
        deps: the objects that an object depends on, or None; the same ones each time.

    Raises:
        ValueError: objects depend on each other in a circle.

    Source: A. B. Kahn, "Topological sorting of large networks", 1962.
    """
    waiting: dict[int, int] = {}
    clients: dict[int, list[_T]] = {}
    ready: deque[_T] = deque()
    for node, found in walk(graphs, lambda each: tuple(deps(each) or ()), bfs=False, return_children=True):
        needed = {id(each) for each in found or ()}
        waiting[id(node)] = len(needed)
        for each in needed:
            clients.setdefault(each, []).append(node)
        if not needed:
            ready.append(node)
    left = len(waiting)
    while ready:
        node = ready.popleft()
        left -= 1
        yield node
        for client in clients.get(id(node), ()):
            waiting[id(client)] -= 1
            if not waiting[id(client)]:
                ready.append(client)
    if left:
        raise ValueError(f"the graph contains cycles: {left} of {len(waiting)} objects depend on each other")


def general_toposort(outputs: Iterable[_T], deps: Callable[[_T], Iterable[_T] | None]) -> list[_T]:
    """`walk_toposort` as a list."""
    return list(walk_toposort(outputs, deps))


def io_toposort(inputs: Collection[Variable], outputs: Iterable[Variable]) -> list[Apply]:
    """Nodes between ``inputs`` and ``outputs`` in an order in which they can run."""
    return list(toposort(outputs, blockers=inputs))


applys_between = io_toposort


def variable_depends_on(variable: Variable, depends_on: Variable | Collection[Variable]) -> bool:
    """True if ``variable`` is, or is computed from, any of ``depends_on``."""
    wanted = {depends_on} if isinstance(depends_on, Variable) else set(depends_on)
    return any(v in wanted for v in ancestors([variable], wanted))


def apply_depends_on(apply: Apply, depends_on: Apply | Collection[Apply]) -> bool:
    """True if ``apply`` is, or takes inputs computed by, any of ``depends_on``."""
    wanted = {depends_on} if isinstance(depends_on, Apply) else set(depends_on)
    return apply in wanted or any(node in wanted for node in apply_ancestors(apply.inputs))


def truncated_graph_inputs(
    outputs: Iterable[Variable], ancestors_to_include: Collection[Variable] | None = None
) -> list[Variable]:
    """Variables to cut the graph at so that it still contains ``ancestors_to_include`` but as little as
    possible else.

    A variable is cut at when none of the wanted ones lies beyond it; the wanted ones that are reached are in
    the result too.
    """
    wanted = set(ancestors_to_include or ())
    outputs = list(outputs)
    if not wanted:
        return [v for v in dict.fromkeys(outputs) if not isinstance(v, Constant)]
    depends: set[Variable] = set(wanted)
    for node in toposort(outputs):
        if any(v in depends for v in node.inputs):
            depends.update(node.outputs)

    def leads_on(v: Variable) -> bool:
        return v.owner is not None and any(parent in depends for parent in v.owner.inputs)

    reached = walk(
        outputs, lambda v: v.owner.inputs if v.owner is not None and leads_on(v) else None, bfs=False
    )
    return [v for v in reached if not isinstance(v, Constant) and (v in wanted or not leads_on(v))]


def get_var_by_name(graphs: Iterable[Variable], target_var_id: str) -> tuple[Variable, ...]:
    """Variables among ``graphs`` and their ancestors whose name or ``auto_name`` is ``target_var_id``."""
    return tuple(v for v in ancestors(graphs) if target_var_id in (v.name, v.auto_name))
