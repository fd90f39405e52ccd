# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops made from JAX functions: ``wrap_jax``. JAX is needed only when it is used.

Source: PyTensor's ``wrap_jax``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables
from graphc.graph.op import Op
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import is_discrete

if TYPE_CHECKING:
    from graphc_runtime.thunk import Register

Function = Callable[..., Any]
# Stand for sizes that are not static; what differs between both is not static either.
_SIZES = (2, 3)


def _jax() -> Any:
    try:
        jax = importlib.import_module("jax")
    except ImportError:
        raise ImportError(
            "wrap_jax needs JAX, which is not installed here: python -m pip install jax"
        ) from None
    return jax


def _exact() -> Any:
    """A context in which JAX keeps 64-bit dtypes."""
    jax = _jax()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64()


class JaxFunction(Op):
    """An op that calls a JAX function, compiled by ``jax.jit``; differentiated by ``jax.vjp``.

    Args:
        function: takes and returns (a tuple of) JAX arrays.
        name: shown in messages.
    """

    __props__ = ("function",)
    body_obstacle = "it calls a JAX function"

    def __init__(self, function: Function, name: str | None = None) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def make_node(self, *inputs: Any) -> Apply:
        variables = [pt.as_tensor_variable(x) for x in inputs]
        found = [self._result_types(variables, size) for size in _SIZES]
        outputs = []
        for one, other in zip(*found, strict=True):
            if len(one.shape) != len(other.shape):
                raise TypeError(f"the rank of a result of {self.name} depends on sizes that are not static")
            shape = [a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)]
            outputs.append(TensorType(np.dtype(one.dtype).name, shape).make_variable())
        return Apply(self, variables, outputs)

    def _result_types(self, variables: Sequence[Variable], size: int) -> list[object]:
        jax = _jax()
        shapes = [tuple(size if n is None else n for n in x.type.shape) for x in variables]
        with _exact():
            structs = [
                jax.ShapeDtypeStruct(shape, x.type.numpy_dtype)
                for shape, x in zip(shapes, variables, strict=True)
            ]
            try:
                return list(_listed(jax.eval_shape(self.function, *structs)))
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"JAX cannot trace {self.name} for arrays of shapes {shapes}, in which {size} stands for "
                    "what is not static; give inputs static shapes (graphc.tensor.specify_shape), if that is "
                    f"the reason: {error}"
                ) from error

    @functools.cached_property
    def _compiled(self) -> Any:
        return _jax().jit(self.function)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        with _exact():
            values = _listed(self._compiled(*inputs))
            for cell, value, y in zip(output_storage, values, node.outputs, strict=True):
                cell[0] = np.array(value, y.type.numpy_dtype)  # JAX's own memory is read-only

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        wanted = tuple(i for i, x in enumerate(inputs) if not is_discrete(x))
        reached = tuple(
            i
            for i, (y, g) in enumerate(zip(outputs, cotangents, strict=True))
            if g is not None and not is_discrete(y)
        )
        if not wanted or not reached:
            return [None] * len(inputs)
        op = JaxFunction(_Vjp(self.function, len(inputs), wanted, reached), f"gradient of {self.name}")
        pairs = ((cotangents[i], outputs[i].dtype) for i in reached)
        given = [pt.cast(g, dtype) for g, dtype in pairs if g is not None]
        found = dict(zip(wanted, op(*inputs, *given, return_list=True), strict=True))
        return [found.get(i) for i in range(len(inputs))]

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """By ``jax.vmap``."""
        op = JaxFunction(_Vmap(self.function, tuple(batched)), f"batch of {self.name}")
        found: list[Variable] = op(*inputs, return_list=True)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_compiled"}

    def __str__(self) -> str:
        return f"JaxFunction{{{self.name}}}"


class _Transformed:
    """A function made of another one; equal ones are equal, so that their ops are."""

    def __init__(self, function: Function, *options: Any) -> None:
        self.function, self.options = function, options

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Transformed)
            and type(self) is type(other)
            and (self.function, self.options) == (other.function, other.options)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.function, self.options))


class _Vjp(_Transformed):
    """Cotangents of the inputs ``wanted`` from the inputs and the cotangents of the outputs ``reached``."""

    def __call__(self, *values: Any) -> Any:
        jax = _jax()
        count, wanted, reached = self.options
        inputs, given = list(values[:count]), values[count:]

        def partial(*chosen: object) -> Any:
            for i, x in zip(wanted, chosen, strict=True):
                inputs[i] = x
            outputs = _listed(self.function(*inputs))
            return tuple(outputs[i] for i in reached)

        return jax.vjp(partial, *(inputs[i] for i in wanted))[1](tuple(given))


class _Vmap(_Transformed):
    """The function over the leading axes of some inputs."""

    def __call__(self, *values: Any) -> Any:
        axes = tuple(0 if batched else None for batched in self.options[0])
        return _jax().vmap(self.function, in_axes=axes)(*values)


class _Flat(_Transformed):
    """A function of trees as one of their leaves; notes the structure of what it returns."""

    def __init__(self, function: Function, structure: Any) -> None:
        super().__init__(function, structure)
        self.result: Variable | None = None

    def __call__(self, *leaves: Any) -> Any:
        tree = _jax().tree_util
        args, kwargs = tree.tree_unflatten(self.options[0], leaves)
        found, self.result = tree.tree_flatten(self.function(*args, **kwargs))
        return tuple(found)


def _listed(values: Any) -> Sequence[Any]:
    return values if isinstance(values, tuple | list) else (values,)


def wrap_jax(function: Function) -> Callable[..., Any]:
    """A function of variables that runs a JAX function as part of the graph.

    Arguments and results may be nested in dicts, lists and tuples. Types of results are found by
    ``jax.eval_shape``, gradients by ``jax.vjp``, batches by ``jax.vmap``. The op runs beside compiled code:
    arrays are handed over by copy.

    Args:
        function: takes and returns JAX arrays; it is traced, so it must be pure.

    Returns:
        The function to call with variables; also usable as a decorator.

    Raises:
        ImportError: JAX is missing (when the function is called).
        TypeError: JAX cannot trace the function (when it is called).

    Examples:
        >>> square = graphc.wrap_jax(lambda v: v * v)
        >>> x = pt.vector("x")
        >>> try:
        ...     y = square(x)
        ... except ImportError:  # without JAX
        ...     y = x * x
        >>> y.type
        TensorType(float64, (?,))
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        tree = _jax().tree_util
        leaves, structure = tree.tree_flatten((args, kwargs))
        flat = _Flat(function, structure)
        outputs = JaxFunction(flat, getattr(function, "__name__", None))(*leaves, return_list=True)
        return tree.tree_unflatten(flat.result, outputs)

    return call


as_jax_op = wrap_jax
