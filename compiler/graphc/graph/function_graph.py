# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``FunctionGraph``: a graph with fixed inputs and outputs, as the compiler sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from graphc import hooks
from graphc.errors import MissingInputError
from graphc.graph.basic import Apply, Constant, Variable, describe
from graphc.graph.destroy import analyse
from graphc.graph.replace import clone_with_inputs
from graphc.graph.traversal import graph_inputs, io_toposort

if TYPE_CHECKING:
    from graphc.graph.basic import SourceLocation
    from graphc.graph.op import Op
    from graphc.graph.type import Type


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

    def __init__(
        self,
        inputs: Sequence[Variable] | None = None,
        outputs: Sequence[Variable] = (),
        clone: bool = False,
    ) -> None:
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
