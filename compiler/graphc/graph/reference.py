# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph op by op in Python, by each op's ``perform``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.contract import Executor
from graphc.graph.demand import is_conditional, sides
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.thunks import perform_node

if TYPE_CHECKING:
    pass


class ReferenceExecutor(Executor):
    """Runs a graph in Python.

    Args:
        fgraph: the graph.
        strict: as in `perform_node`.
    """

    def __init__(self, fgraph: FunctionGraph, strict: bool = False) -> None:
        self.fgraph, self.strict = fgraph, strict

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
            self._compute(self.fgraph.outputs, known)
            return known
        for node in self.fgraph.nodes:
            results = self._perform(node, [known[v] for v in node.inputs])
            known.update(zip(node.outputs, results, strict=True))
        return known

    def _perform(self, node: Apply, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return perform_node(node, inputs, self.strict, bool(self.fgraph.destruction.destroyers))

    def _compute(self, wanted: Iterable[Variable], known: dict[Variable, np.ndarray]) -> None:
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
                results = self._perform(node, _arguments(node, known))
                known.update(zip(node.outputs, results, strict=True))
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
    overwritten = node.op.overwritten
    return [copy.deepcopy(known[x]) if i in overwritten else known[x] for i, x in enumerate(node.inputs)]
