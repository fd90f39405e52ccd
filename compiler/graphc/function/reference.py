# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph op by op in Python, by each op's ``perform``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.location import describe
from graphc.tensor.type import TensorType


def perform_node(node: Apply, inputs: Sequence[Any], body: Any = None) -> list[Any]:
    """Run one node.

    Args:
        node: the node.
        inputs: values of its inputs.
        body: what runs the inner graph of a loop, instead of the reference.

    Raises:
        Exception: whatever the op raises, with the op and the user's line in its message.
        TypeError: the op broke the promise of its output types.
    """
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    try:
        with np.errstate(all="ignore"):
            if body is None:
                node.op.perform(node, inputs, storage)
            else:
                storage = [[value] for value in node.op.run(inputs, body)]
        return [_checked(v, cell[0]) for v, cell in zip(node.outputs, storage, strict=True)]
    except Exception as error:
        _add_place(error, node)
        raise


def _checked(v: Variable, value: Any) -> Any:
    """An output as its type promises it; ufuncs return scalars where 0-d arrays are meant."""
    if not isinstance(v.type, TensorType):
        return v.type.filter(value)
    return v.type.filter(np.asarray(value), strict=True)


def _add_place(error: Exception, node: Apply) -> None:
    """Say in the message itself which op failed, as notes are not part of ``str(error)``."""
    place = f"while running {node}{describe(node.location)}"
    if error.args and isinstance(error.args[0], str) and not isinstance(error, KeyError | OSError):
        error.args = (f"{error.args[0]}\n  {place}", *error.args[1:])
    else:
        error.add_note(place)


class ReferenceExecutor:
    """Runs a graph in Python.

    Args:
        fgraph: the graph.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output; results may share memory with inputs."""
        computed = self.run_all(values)
        return [computed[v] for v in self.fgraph.outputs]

    def run_all(self, values: Sequence[Any]) -> dict[Variable, Any]:
        """As `run`, but returns the value of every variable of the graph."""
        known: dict[Variable, Any] = {v: v.data for v in self.fgraph.variables if isinstance(v, Constant)}
        known.update(zip(self.fgraph.inputs, values, strict=True))
        for node in self.fgraph.nodes:
            results = perform_node(node, [known[v] for v in node.inputs])
            known.update(zip(node.outputs, results, strict=True))
        return known
