# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``FunctionGraph``: a graph with fixed inputs and outputs, as the compiler sees it.

It is consistent if no op overwrites what is read later.

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
from typing import TYPE_CHECKING, TypeAlias

from graphc import hooks
from graphc.errors import InconsistencyError, MissingInputError
from graphc.graph.basic import Apply, Constant, Variable, Variables, describe
from graphc.graph.replace import clone_with_inputs
from graphc.graph.traversal import graph_inputs, io_toposort
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.basic import SourceLocation
    from graphc.graph.op import Op
    from graphc.graph.type import Type


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
            for position in node.op.overwritten:
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


def _name(node: Apply) -> str:
    return f"{node.op}{describe(node.location)}"


def _value(root: Variable) -> str:
    made = f", the result of {_name(root.owner)}" if root.owner is not None else describe(root.location)
    return f"{root}{made}"


class FunctionGraph:
    """Inputs, outputs, and the nodes between them in the order in which they run. It does not change once
    built.

    Args:
        inputs: variables whose values are given; what lies beyond them is not part of the graph. By default
            the roots of the graph but for constants.
        outputs: variables to compute.
        clone: copy the graph first, so that the variables are nobody else's.

    Attributes:
        nodes: applications, each after those it needs.
        variables: every variable of the graph, inputs first.
        clients: for each variable, its uses as (node, position); a use as output is ``("output", position)``.
        destruction: what nodes overwrite.

    Raises:
        InconsistencyError: a node overwrites memory that is still needed.
        MissingInputError: an output depends on a root that is neither an input nor a constant.

    Examples:
        >>> x = pt.vector("x")
        >>> graph = graphc.FunctionGraph([x], [pt.exp(x).sum()])
        >>> [str(node.op) for node in graph.toposort()]
        ['exp', 'Sum{axes=[0]}']
    """

    def __init__(self, inputs: Variables | None = None, outputs: Variables = (), clone: bool = False) -> None:
        self.outputs = list(outputs)
        roots = (v for v in graph_inputs(self.outputs) if not isinstance(v, Constant))
        self.inputs = list(roots if inputs is None else inputs)
        if len(set(self.inputs)) != len(self.inputs):
            repeated = next(v for i, v in enumerate(self.inputs) if v in self.inputs[:i])
            raise ValueError(f"the variable {repeated} is given more than once among the inputs")
        if clone:
            self.inputs, self.outputs = clone_with_inputs(self.inputs, self.outputs)
        self.destruction = analyse(self.outputs, io_toposort(self.inputs, self.outputs))
        self.nodes: list[Apply] = self.destruction.order
        self.clients: dict[Variable, list[tuple[Apply | str, int]]] = {v: [] for v in self.inputs}
        for node in self.nodes:
            for position, v in enumerate(node.inputs):
                self._add_client(v, node, position)
            for v in node.outputs:
                self.clients.setdefault(v, [])
        for position, v in enumerate(self.outputs):
            self._add_client(v, "output", position)
        self.variables = list(self.clients)

    def _add_client(self, v: Variable, client: Apply | str, position: int) -> None:
        uses = self.clients.get(v)
        if uses is None:
            if not isinstance(v, Constant):
                user = client if isinstance(client, Apply) else None
                used_by = (
                    f"it is used by {user.op}{describe(user.location)}"
                    if user
                    else f"it is output {position}"
                )
                raise MissingInputError(
                    f"the input {v} of type {v.type}{describe(v.location)} is not among the inputs; "
                    f"{used_by}. Add it to the inputs, or give it a value with givens= "
                    "(for eval(), with a key of its dict)"
                )
            uses = self.clients[v] = []
        uses.append((client, position))

    def toposort(self) -> list[Apply]:
        """The nodes in the order in which they run."""
        return list(self.nodes)

    @property
    def apply_nodes(self) -> set[Apply]:
        """The nodes as a set."""
        return set(self.nodes)

    def __contains__(self, item: object) -> bool:
        return item in self.clients or item in self.nodes

    def __reduce__(self) -> tuple[object, ...]:
        # A table instead of nested objects: pickling a long chain of nodes would exceed the recursion limit.
        given = set(self.inputs)
        roots = [v for v in self.variables if v.owner is None or v in given]
        index = {v: i for i, v in enumerate(roots)}
        rows = []
        for node in self.nodes:
            outputs = [(v.type, v.name) for v in node.outputs]
            rows.append((node.op, [index[v] for v in node.inputs], outputs, node.location))
            for v in node.outputs:
                index[v] = len(index)
        return _from_table, (roots, rows, [index[v] for v in self.inputs], [index[v] for v in self.outputs])

    def __str__(self) -> str:
        return f"FunctionGraph({', '.join(map(str, self.inputs))} -> {', '.join(map(str, self.outputs))})"

    __repr__ = __str__

    def _repr_svg_(self) -> str | None:
        """SVG for notebooks."""
        return hooks.picture()(self)


_Row: TypeAlias = "tuple[Op, list[int], list[tuple[Type, str | None]], SourceLocation | None]"


def _from_table(
    roots: list[Variable], rows: list[_Row], inputs: list[int], outputs: list[int]
) -> FunctionGraph:
    """Build a graph from the table that pickling makes of it."""
    variables = list(roots)
    for op, operands, results, location in rows:
        fresh = [type_.make_variable(name) for type_, name in results]
        node = Apply(op, [variables[i] for i in operands], fresh)
        node.location = location
        variables.extend(fresh)
    return FunctionGraph([variables[i] for i in inputs], [variables[i] for i in outputs])
