# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a graph op by op in Python, by each op's ``perform``."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.contract import Contract, Executor, add_place
from graphc.graph.demand import is_conditional, sides
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.op import Op
from graphc.graph.thunks import user_thunk

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register


def perform_node(
    node: Apply, inputs: Sequence[np.ndarray], strict: bool = False, overwrites: bool = False
) -> list[np.ndarray]:
    """Run one node, by ``perform``, or by ``make_thunk`` of an op of a user that has nothing else.

    Args:
        node: the node.
        inputs: values of its inputs.
        strict, overwrites: as in `Contract`.

    Raises:
        Exception: whatever the op raises, with the op and the user's line in its message.
        TypeError: the op broke the promise of its output types.
    """
    storage: list[Register] = [[None] for _ in node.outputs]
    if node.op.is_foreign():
        contract = Contract(node, strict=strict)
        contract.overwrites = overwrites
        if type(node.op).perform in (None, Op.perform) and type(node.op).make_thunk is not Op.make_thunk:
            return _run_thunk(node, contract, inputs)
        try:
            with np.errstate(all="ignore"):
                node.op.perform(node, contract.given(inputs), storage)
            contract.settle(inputs, storage)
        except Exception as error:
            contract.explain(error)
            raise
        return [cell[0] for cell in storage]
    try:
        with np.errstate(all="ignore"):
            node.op.perform(node, inputs, storage)
        return [v.type.filter_output(cell[0]) for v, cell in zip(node.outputs, storage, strict=True)]
    except Exception as error:
        add_place(error, node)
        raise


def _run_thunk(node: Apply, contract: Contract, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs a thunk that is made for this one call."""
    flags = [[False] for _ in node.outputs]
    registers: list[Register] = [[None] for _ in node.outputs]
    thunk = user_thunk(node, [[True] for _ in inputs], flags, [[x] for x in inputs], registers)
    thunk.contract = contract
    with np.errstate(all="ignore"):
        thunk()
    return [cell[0] for cell in registers]


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
    destroyed = {i for positions in node.op.destroy_map.values() for i in positions}
    return [copy.deepcopy(known[x]) if i in destroyed else known[x] for i, x in enumerate(node.inputs)]
