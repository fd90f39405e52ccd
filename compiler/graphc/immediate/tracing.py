# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing: a call of a function of ``graphc.tensor`` with symbolic inputs, which gives the graph to
compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.function.io import OutputForm
from graphc.graph.basic import SourceLocation, Variable
from graphc.graph.op import in_float32, is_rounded
from graphc.graph.tensor.convert import constant
from graphc.graph.tensor.type import TensorType
from graphc.graph.traversal import toposort
from graphc.immediate.arguments import Split, Weak
from graphc.immediate.executable import Executable
from graphc.immediate.tensor import Tensor
from graphc.ops.elementwise import Elementwise

if TYPE_CHECKING:
    from graphc.immediate.environment import Environment

_active: ContextVar[Trace | None] = ContextVar("graphc_immediate_trace", default=None)


class Trace:
    """A function is being traced: tensors that it reads become inputs of the graph.

    Args:
        env: the environment that will run the graph.
    """

    _token: Token[Trace | None]

    def __init__(self, env: Environment) -> None:
        self.env = env
        self._lifted: dict[int, tuple[Tensor, Variable]] = {}

    def lift(self, tensor: Tensor) -> Variable:
        """The input that stands for a tensor.

        Raises:
            TypeError: the tensor belongs to another environment.
        """
        self.env._check_owner(tensor)
        found = self._lifted.get(id(tensor))
        if found is None:
            ones = tuple(size == 1 for size in tensor._held().shape)
            variable = tensor._kind.type(ones).make_variable(tensor.name)
            found = self._lifted[id(tensor)] = (tensor, variable)
        return found[1]

    @property
    def captured(self) -> list[tuple[Tensor, Variable]]:
        """The tensors that were lifted, and their inputs."""
        return list(self._lifted.values())

    def __enter__(self) -> Trace:
        self._token = _active.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.reset(self._token)


def active_trace() -> Trace | None:
    """The innermost trace of this thread or task."""
    return _active.get()


def lift(tensor: Tensor) -> Variable:
    """A tensor as a variable: an input of the function that is being traced, else a constant."""
    trace = _active.get()
    return constant(tensor._array(), tensor.name) if trace is None else trace.lift(tensor)


class NoVariables(Exception):
    """A function returned something that is no graph; ``value`` is what it returned."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def trace_call(
    env: Environment,
    name: str,
    function: Callable[..., Any],
    refill: Callable[[Split], tuple[list[Any], dict[str, Any]]],
    split: Split,
    types: Sequence[TensorType | None],
) -> tuple[Executable, list[Tensor]]:
    """The executable of a call, and the tensors that functions among its arguments read: its last inputs.

    Args:
        env: the environment that runs it.
        name: name of the operation.
        function: builds the graph from the arguments.
        refill: goes through the arguments with another split, and returns them with inputs replaced.
        split: the split of the actual arguments.
        types: for each input its type; None for Python numbers.

    Raises:
        NoVariables: the function returns no variable.
    """
    symbols: list[Any] = [
        t.make_variable() if t is not None else x.value if isinstance(x, Weak) else x
        for x, t in zip(split.inputs, types, strict=True)
    ]
    weaks: list[np.dtype | None] = [None] * len(symbols)
    with Trace(env) as trace:
        if None in types and isinstance(function, Elementwise):
            probe = function.make_node(*in_float32(symbols))
            for i, x in enumerate(split.inputs):
                if isinstance(x, Weak):
                    dtype = probe.inputs[i].type.numpy_dtype
                    weaks[i], symbols[i] = dtype, TensorType(dtype, ()).make_variable()
        args, kwargs = refill(split.fill(symbols))
        result = function(*args, **kwargs)
        if None in types and is_rounded(types) and getattr(result, "dtype", None) == "float32":
            result = result.astype("bfloat16")
        if not _has_variables(result):
            raise NoVariables(result)
        form = OutputForm(result)
    if not split.functions:
        # Other lines will use the executable, too.
        locate(form.variables, symbols, None)
    kinds = [env._kind(v.type.dtype, v.type.ndim) for v in form.variables]
    captured = trace.captured
    inputs = [*symbols, *(variable for _, variable in captured)]
    weaks += [None] * len(captured)
    executable = Executable(name, inputs, form, kinds, weaks=weaks, place=env._place)
    return executable, [tensor for tensor, _ in captured]


def locate(outputs: Sequence[Variable], inputs: Sequence[Variable], location: SourceLocation | None) -> None:
    """Say where the nodes between two sets of variables were made."""
    for node in toposort(outputs, blockers=set(inputs)):
        node.location = location


def _has_variables(x: object) -> bool:
    if isinstance(x, list | tuple):
        return any(map(_has_variables, x))
    if isinstance(x, dict):
        return any(map(_has_variables, x.values()))
    return isinstance(x, Variable) or type(x) is Tensor
