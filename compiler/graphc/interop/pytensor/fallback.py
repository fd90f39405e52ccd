# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops without a conversion: graphc calls PyTensor's own ``perform`` for them, in Python."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply as PyTensorApply
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type_other import NoneTypeT, SliceType

import graphc.tensor as pt
from graphc.graph.basic import Apply
from graphc.graph.op import Op
from graphc.interop.pytensor.types import is_generator, is_tensor, new_type
from graphc_runtime.generators import generator_of, state_of
from graphc_runtime.marshal import demand_numbers

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


class PyTensorNode(Op):
    """Runs one node of PyTensor by the ``perform`` of its op. Generators travel as their states. What the op
    overwrites is a copy, since graphc's graph does not say that it does.

    Args:
        node: PyTensor's node.
        constants: by position, inputs such as slices and None that graphc has no variables for.
        reason: why graphc does not compile it.
    """

    calls_user_code = True

    def __init__(self, node: PyTensorApply, constants: dict[int, Any], reason: str) -> None:
        self.node = node
        self.reason = reason
        self.constants = constants
        # Elementwise ops and loops make what their `perform` needs here.
        node.op.prepare_node(node, storage_map=None, compute_map=None, impl="py")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return f"PyTensor{{{self.node.op}}} ({self.reason})"

    def make_node(self, *inputs: Any) -> Apply:
        outputs = [new_type(output.type).make_variable(output.name) for output in self.node.outputs]
        return Apply(self, list(inputs), outputs)

    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Sequence[list[Any]]) -> None:
        values = iter(inputs)
        given = [
            self.constants[i] if i in self.constants else _to_pytensor(variable, next(values))
            for i, variable in enumerate(self.node.inputs)
        ]
        for i in {i for positions in self.node.op.destroy_map.values() for i in positions}:
            given[i] = copy.deepcopy(given[i])
        results: list[list[Any]] = [[None] for _ in self.node.outputs]
        self.node.op.perform(self.node, given, results)
        for storage, [result], variable in zip(output_storage, results, self.node.outputs, strict=True):
            storage[0] = _from_pytensor(variable, result)


def _to_pytensor(variable: Any, value: TensorLike) -> Any:
    if is_generator(variable.type):
        return generator_of(value) if isinstance(value, np.ndarray) else value
    if isinstance(variable.type, ScalarType):
        return np.asarray(value)[()]
    return value


def _from_pytensor(variable: Any, value: TensorVariable) -> Any:
    if is_generator(variable.type):
        return state_of(value)
    if not is_tensor(variable.type):
        return value
    demand_numbers(value)
    dtype = np.dtype(variable.type.dtype)
    if np.iscomplexobj(value) and dtype.kind != "c":
        raise TypeError(f"{variable} is {dtype} by PyTensor's type; its op gives complex numbers")
    return np.asarray(value, dtype=dtype)


def run_in_python(node: PyTensorApply, inputs: Sequence[Variable], reason: str) -> list[Any]:
    """The results of a node of PyTensor, computed in Python when the graph runs.

    Args:
        node: PyTensor's node.
        inputs: what stands for its inputs.
        reason: why it is not converted; compile reports show it.

    Raises:
        TypeError: the op has inputs that are computed and that graphc has no type for, or no ``perform``.
    """
    constants: dict[int, Variable] = {}
    tensors = []
    for i, (value, variable) in enumerate(zip(inputs, node.inputs, strict=True)):
        if isinstance(variable.type, (NoneTypeT, SliceType)):
            constants[i] = value
        else:
            tensors.append(pt.as_tensor_variable(value) if is_tensor(variable.type) else value)
    made = PyTensorNode(node, constants, reason).make_node(*tensors)
    return list(made.outputs)
