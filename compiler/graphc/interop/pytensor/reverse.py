# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of graphc as ops of PyTensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable, cast, zeros_like
from pytensor.tensor.type import TensorType

import graphc
from graphc.function.types import Function
from graphc.graph.replace import graph_replace
from graphc.interop import is_smooth, pullback_graph
from graphc.interop.pytensor.convert import Converter, Values, converts

if TYPE_CHECKING:
    from graphc.graph.basic import Variable as Converted
    from graphc.interop.pytensor.convert import Result


class GraphcOp(Op):
    """Computes a graph of graphc; PyTensor's other backends call it, graphc's modes take the graph itself.

    Args:
        inputs: variables of graphc.
        outputs: what is computed from them, and from shared variables and constants.
        name: shown in graphs.
        function: the compiled graph, if there is one.
    """

    def __init__(
        self,
        inputs: Sequence[Converted],
        outputs: Sequence[Converted],
        name: str,
        function: Callable[..., object] | None = None,
    ) -> None:
        for variable in (*inputs, *outputs):
            if not isinstance(variable.type, graphc.tensor.TensorType):
                raise TypeError(f"PyTensor has no counterpart of {variable} of type {variable.type}")
        self.inputs, self.outputs, self.name = list(inputs), list(outputs), name
        if function is not None:
            self.__dict__["function"] = function

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The compiled graph: values in, a list of arrays out."""
        return graphc.function(self.inputs, self.outputs, name=self.name, on_unused_input="ignore")

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("function", "_pullback")}

    def __str__(self) -> str:
        return f"graphc{{{self.name}}}"

    def make_node(self, *inputs: Any) -> Apply:
        if len(inputs) != len(self.inputs):
            raise TypeError(f"{self} takes {len(self.inputs)} inputs, given {len(inputs)}")
        given = []
        for value, expected in zip(inputs, self.inputs, strict=True):
            variable = as_tensor_variable(value)
            kind = _type_of(expected)
            if variable.type.ndim != kind.ndim or not np.can_cast(
                variable.type.dtype, kind.dtype, "same_kind"
            ):
                raise TypeError(f"{self}: the input {expected} has the type {kind}, given {variable.type}")
            given.append(cast(variable, kind.dtype))
        return Apply(self, given, [_type_of(output)() for output in self.outputs])

    def perform(
        self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[list[object]]
    ) -> None:
        for storage, result in zip(output_storage, self.function(*inputs), strict=True):
            storage[0] = result

    @cached_property
    def _pullback(self) -> tuple[GraphcOp, list[int]]:
        """The op of the derivatives by the inputs of floating point, and the positions of these."""
        inputs, slopes, positions = pullback_graph(self.inputs, self.outputs)
        return GraphcOp(inputs, slopes, f"pullback of {self.name}"), positions

    def pullback(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], cotangents: Sequence[Variable]
    ) -> list[Variable]:
        """Cotangents of the inputs; inputs of integers have none."""
        op, positions = self._pullback
        given = [
            zeros_like(output) if isinstance(cotangent.type, DisconnectedType) else cotangent
            for output, cotangent in zip(outputs, cotangents, strict=True)
        ]
        slopes = dict(zip(positions, op.make_node(*inputs, *given).outputs, strict=True)) if positions else {}
        return [slopes[i] if i in slopes else disconnected_type() for i in range(len(inputs))]

    L_op = pullback  # its name before PyTensor 3

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Every input of floating point may reach every output."""
        return [[is_smooth(v)] * len(self.outputs) for v in self.inputs]


def _type_of(variable: Converted) -> TensorType:
    kind: Variable = variable.type
    return TensorType(kind.dtype, kind.shape)


def to_pytensor(function: Function) -> Callable[..., Any]:
    """A compiled function of graphc as a function of PyTensor's variables, with gradients.

    ``to_pytensor(f)(x, y)`` is an expression that PyTensor's functions and PyMC's models may contain.
    Derivatives are graphc's. Shared variables of graphc have the values of the time of the call.

    Args:
        function: what `graphc.function` returned; it must not update shared variables.

    Returns:
        A function of as many variables as `function` has inputs; it returns a variable, or a list of several.

    Raises:
        TypeError: the function updates shared variables, or has inputs or results that are not tensors.
    """
    if function.updates:
        names = ", ".join(str(variable) for variable in function.updates)
        raise TypeError(f"an op of PyTensor cannot update graphc's shared variables ({names})")
    inputs = [item.variable for item in function.inputs]
    count = len(function.outputs)

    def flat(*values: object) -> list[object]:
        results = function(*values)
        return [results] if count == 1 and not isinstance(results, (list, tuple)) else list(results)

    plain = function.signature.form.is_single or function.signature.form.is_list
    op = GraphcOp(inputs, function.outputs, function.name or "function", flat if plain else None)

    def apply(*arguments: Any) -> Any:
        made = op.make_node(*arguments).outputs
        return made[0] if function.signature.form.is_single else list(made)

    return apply


@converts("GraphcOp", module="graphc.")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    """The graph itself, for other inputs."""
    return graph_replace(op.outputs, dict(zip(op.inputs, inputs, strict=True)), strict=False)
