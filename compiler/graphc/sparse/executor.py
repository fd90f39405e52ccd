# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``PartsExecutor``: a graph with sparse inputs and results as one executable on their arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.emit.emitter import why_not_native
from graphc.graph.basic import Variable
from graphc.graph.contract import Executor
from graphc.graph.demand import is_conditional
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.replace import fresh_root, rebuild
from graphc.graph.tensor.type import TensorType
from graphc.sparse.basic import CSM, CSMProperties, array_of, put_together
from graphc.sparse.type import SparseTensorType

if TYPE_CHECKING:
    import numpy as np


def executor_on_parts(
    fgraph: FunctionGraph, compile_native: Callable[[FunctionGraph], Executor]
) -> PartsExecutor | None:
    """An executor of a graph that only takes sparse inputs apart and puts sparse results together.

    Args:
        fgraph: the graph.
        compile_native: compiles a graph of native nodes on tensors.

    Returns:
        The executor, or None: something between inputs and results runs in Python.
    """
    taken = [node for node in fgraph.nodes if isinstance(node.op, CSMProperties)]
    made = {v.owner for v in fgraph.outputs if v.owner is not None and isinstance(v.owner.op, CSM)}
    rest = [node for node in fgraph.nodes if node not in made and node not in taken]
    inputs = set(fgraph.inputs)
    allowed = all(isinstance(v.type, TensorType | SparseTensorType) for v in fgraph.inputs)
    if (
        not allowed
        or not rest
        or any(node.inputs[0] not in inputs for node in taken)
        or any(why_not_native(node) is not None or is_conditional(node) for node in rest)
        or any(isinstance(v.type, SparseTensorType) and v.owner not in made for v in fgraph.outputs)
    ):
        return None
    return PartsExecutor(fgraph, compile_native)


class PartsExecutor(Executor):
    """Passes the arrays of sparse inputs to machine code, without copies, and wraps sparse results.

    Attributes:
        compiled: the executable, of tensors to tensors.
    """

    def __init__(self, fgraph: FunctionGraph, compile_native: Callable[[FunctionGraph], Executor]) -> None:
        roots: dict[Variable, Variable] = {}
        # What each argument of the executable is: position of an input, and which of its arrays, or None.
        self._arguments: list[tuple[int, int | None]] = []
        arguments: list[Variable] = []

        def add(v: Variable, place: tuple[int, int | None]) -> None:
            roots[v] = fresh_root(v)
            arguments.append(roots[v])
            self._arguments.append(place)

        position = {v: i for i, v in enumerate(fgraph.inputs)}
        for i, v in enumerate(fgraph.inputs):
            if isinstance(v.type, TensorType):
                add(v, (i, None))
        for node in fgraph.nodes:
            if isinstance(node.op, CSMProperties):
                for which, v in enumerate(node.outputs):
                    if fgraph.clients[v]:
                        add(v, (position[node.inputs[0]], which))
        # Results as places: of an argument that is passed on, or of a result of the executable.
        wanted: list[Variable] = []
        self._results: list[tuple[str | None, list[tuple[bool, int]]]] = []
        for v in fgraph.outputs:
            sparse = isinstance(v.type, SparseTensorType)
            parts = v.owner.inputs if sparse and v.owner is not None else [v]
            places = []
            for part in parts:
                if sparse and part in roots:
                    places.append((True, arguments.index(roots[part])))
                    continue
                if part not in wanted:
                    wanted.append(part)
                places.append((False, wanted.index(part)))
            self._results.append((v.type.format if sparse else None, places))
        results = rebuild(wanted, dict(roots), copy_nodes=False, strict=True)
        self.compiled = compile_native(FunctionGraph(arguments, results))
        self._plain = not any(format is not None for format, _ in self._results)
        self._call: tuple[Callable[..., Any], bool] | None = self.compiled.call()

    def run(self, values: Sequence[Any]) -> list[Any]:
        """One value for each input to one for each output."""
        if self._call is None:
            self._call = self.compiled.call()
        function, single = self._call
        given = [values[i] if which is None else array_of(values[i], which) for i, which in self._arguments]
        found = function(*given)
        results = [found] if single else found
        if self._plain and len(results) == len(self._results):
            return results
        return [self._wrapped(format, places, given, results) for format, places in self._results]

    def _wrapped(
        self,
        format: str | None,
        places: list[tuple[bool, int]],
        given: list[np.ndarray],
        results: list[np.ndarray],
    ) -> Any:
        parts = [given[at] if passed_on else results[at] for passed_on, at in places]
        if format is None:
            return parts[0]
        return put_together(format, *parts)

    @property
    def whole(self) -> Executor | None:
        """The executable that has the arrays as arguments."""
        return self.compiled.whole

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_call": None}
