# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph op by op in Python, by each op's ``perform``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.demand import is_conditional, sides
from graphc.graph.executor import Executor
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.location import describe
from graphc.graph.tensor.type import TensorType

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


def perform_node(node: Apply, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run one node.

    Args:
        node: the node.
        inputs: values of its inputs.

    Raises:
        Exception: whatever the op raises, with the op and the user's line in its message.
        TypeError: the op broke the promise of its output types.
    """
    storage: list[Register] = [[None] for _ in node.outputs]
    try:
        with np.errstate(all="ignore"):
            node.op.perform(node, inputs, storage)
        return [checked(v, cell[0]) for v, cell in zip(node.outputs, storage, strict=True)]
    except Exception as error:
        add_place(error, node)
        raise


def checked(v: Variable, value: np.ndarray) -> np.ndarray:
    """An output as its type promises it; ufuncs return scalars where 0-d arrays are meant."""
    if not isinstance(v.type, TensorType):
        return v.type.filter(value)
    return v.type.filter(np.asarray(value), strict=True)


def add_place(error: Exception, node: Apply) -> None:
    """Say in the message itself which op failed, as notes are not part of ``str(error)``."""
    place = f"while running {node}{describe(node.location)}"
    if error.args and isinstance(error.args[0], str) and not isinstance(error, KeyError | OSError):
        error.args = (f"{error.args[0]}\n  {place}", *error.args[1:])
    else:
        error.add_note(place)


class ReferenceExecutor(Executor):
    """Runs a graph in Python.

    Args:
        fgraph: the graph.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self.fgraph = fgraph

    def run(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """One value for each input to one for each output; results may share memory with inputs."""
        computed = self.run_all(values)
        return [computed[v] for v in self.fgraph.outputs]

    def run_all(self, values: Sequence[np.ndarray]) -> dict[Variable, np.ndarray]:
        """As `run`, but returns the value of every variable that was computed: of branches only those of
        chosen ones.
        """
        known: dict[Variable, np.ndarray] = {
            v: v.data for v in self.fgraph.variables if isinstance(v, Constant)
        }
        known.update(zip(self.fgraph.inputs, values, strict=True))
        if any(is_conditional(node) for node in self.fgraph.nodes):
            _compute(self.fgraph.outputs, known)
            return known
        for node in self.fgraph.nodes:
            results = perform_node(node, [known[v] for v in node.inputs])
            known.update(zip(node.outputs, results, strict=True))
        return known


def _compute(wanted: Iterable[Variable], known: dict[Variable, np.ndarray]) -> None:
    """Adds the values of ``wanted`` to ``known``, with whatever they need and nothing else."""
    stack = list(wanted)
    while stack:
        v = stack[-1]
        node = v.owner
        if v in known or node is None:
            stack.pop()
            continue
        chosen = _chosen(node, v, known) if is_conditional(node) else None
        missing = [x for x in (node.inputs if chosen is None else [chosen]) if x not in known]
        if missing:
            stack += reversed(missing)
        elif chosen is None:
            known.update(zip(node.outputs, perform_node(node, _arguments(node, known)), strict=True))
        else:
            known[v] = known[chosen]


def _chosen(node: Apply, v: Variable, known: dict[Variable, np.ndarray]) -> Variable:
    """The input that an output of an `IfElse` waits for: the condition, then the chosen value."""
    condition = node.inputs[0]
    if condition not in known:
        return condition
    assert v.index is not None
    return sides(node, v.index)[0 if known[condition] else 1]


def _arguments(node: Apply, known: dict[Variable, np.ndarray]) -> list[np.ndarray]:
    """Values of the inputs; of what is overwritten a copy, as its readers may come later or never."""
    destroyed = {i for positions in node.op.destroy_map.values() for i in positions}
    return [copy.deepcopy(known[x]) if i in destroyed else known[x] for i, x in enumerate(node.inputs)]
