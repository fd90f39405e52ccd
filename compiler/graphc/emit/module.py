# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``emit_module``: a `FunctionGraph` as a module of the graphc dialect.

The emitter writes nodes, and `graphc.emit.conditionals` the regions that they stand in; this module puts both
together.
"""

from __future__ import annotations

from graphc.emit.conditionals import emit_graph
from graphc.emit.emitter import MAX_LITERAL, Emitter
from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.tensor.type import TensorType
from graphc_runtime.record import record


@record(frozen=True)
class EmittedModule:
    """A module and what its arguments stand for.

    Attributes:
        text: the module, with the function ``@main``.
        inputs: variables after the arguments of ``@main``, in order: those of the graph, then ``constants``.
        constants: the large constants among them.
        nodes: applications by number, `all_nodes`; ``n12`` in a location is ``nodes[12]``.
    """

    text: str
    inputs: list[Variable]
    constants: list[Constant]
    nodes: list[Apply]


def large_constants(graph: FunctionGraph) -> list[Constant]:
    """The constants of a graph that become arguments, in order of first use."""
    found: dict[Variable, None] = {}
    for variable in (*(x for node in graph.nodes for x in node.inputs), *graph.outputs):
        if (
            isinstance(variable, Constant)
            and isinstance(variable.type, TensorType)
            and variable.data.size > MAX_LITERAL
        ):
            found[variable] = None
    return [v for v in found if isinstance(v, Constant) and v not in graph.inputs]


def all_nodes(graph: FunctionGraph) -> list[Apply]:
    """The nodes of a graph, then those of the graphs inside its loops, in a fixed order."""
    found: dict[Apply, None] = dict.fromkeys(graph.nodes)
    for node in graph.nodes:
        inner = getattr(node.op, "compiled_graph", None)
        if inner is not None:
            found.update(dict.fromkeys(all_nodes(inner)))
    return list(found)


def node_named(graph: FunctionGraph, name: str) -> Apply | None:
    """The node that a location means, as "n12"; None where it means none of the graph."""
    nodes, number = all_nodes(graph), int(name[1:] or -1)
    return nodes[number] if 0 <= number < len(nodes) else None


def emit_module(graph: FunctionGraph, *, numbered: bool = False) -> EmittedModule:
    """Write a graph as a module.

    Args:
        graph: a graph of tensors whose ops all have ``emit``.
        numbered: locations have the lines of `node_line`, in the place of the user's.

    Returns:
        The text and the meaning of its arguments.

    Raises:
        CompileError: an op has no ``emit``, or a variable is no tensor.
    """
    nodes = all_nodes(graph)
    e = Emitter(nodes, numbered=numbered)
    constants = large_constants(graph)
    arguments = [*graph.inputs, *constants]
    for number, variable in enumerate(arguments):
        e.values[variable] = f"%arg{number}"
    emit_graph(graph, e)
    results = [e.operand(v) for v in graph.outputs]
    types = ", ".join(map(e.type_of, graph.outputs))
    signature = ", ".join(f"%arg{i}: {e.type_of(v)}" for i, v in enumerate(arguments))
    lines = [
        "module {",
        f"  func.func @main({signature}) -> ({types}) {{",
        *e.lines,
        f"    return{' ' + ', '.join(results) + ' : ' + types if results else ''}",
        "  }",
        "}",
        *e.locations,
        "",
    ]
    return EmittedModule("\n".join(lines), arguments, constants, nodes)
