# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of graphc inside functions of JAX: for BlackJAX, NumPyro and whatever else wants JAX's.

`graphc.wrap_jax` is the other direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import graphc
from graphc.function.types import Function
from graphc.graph.basic import Variable
from graphc.interop import is_smooth, pullback_graph

try:
    import jax
except ImportError:
    raise ImportError(
        "graphc.interop.jax needs JAX, which is not installed: pip install 'graphc[jax]'"
    ) from None

Arrays = Sequence[Any]


def _repeated(y: Variable, size: Variable) -> Variable:
    """``y`` for each of so many points."""
    return graphc.tensor.broadcast_to(y, (size, *(y.shape[i] for i in range(y.type.ndim))))


class _Called:
    """A graph that JAX calls; compiled when it is first needed, for one point and for batches of them."""

    def __init__(self, inputs: Sequence[Variable], outputs: Sequence[Variable], name: str) -> None:
        self.inputs, self.outputs, self.name = list(inputs), list(outputs), name
        self._shapes: dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]] = {}

    def _compiled(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Function:
        return graphc.function(inputs, outputs, name=self.name, on_unused_input="ignore")

    @cached_property
    def _single(self) -> Function:
        return self._compiled(self.inputs, self.outputs)

    @cached_property
    def _batch(self) -> Function:
        many = [
            graphc.tensor.TensorType(x.type.dtype, (None, *x.type.shape)).make_variable() for x in self.inputs
        ]
        batched = graphc.vectorize_graph(self.outputs, dict(zip(self.inputs, many, strict=True)))
        size = many[0].shape[0]
        # A result that no input reaches is the same for every point.
        whole = [
            y if y.type.ndim > x.type.ndim else _repeated(y, size)
            for y, x in zip(batched, self.outputs, strict=True)
        ]
        return self._compiled(many, whole)

    @cached_property
    def _sizes(self) -> Function:
        return self._compiled(self.inputs, [y.shape for y in self.outputs])

    @cached_property
    def _pullback(self) -> tuple[_Called, list[int]]:
        inputs, slopes, positions = pullback_graph(self.inputs, self.outputs)
        return _Called(inputs, slopes, f"pullback of {self.name}"), positions

    def _result_types(self, given: Arrays) -> list[jax.ShapeDtypeStruct]:
        """Types of the results; sizes that are not static are computed from the sizes of the inputs."""
        known = [y.type.shape for y in self.outputs]
        if any(None in shape for shape in known):
            key = tuple(np.shape(x) for x in given)
            if key not in self._shapes:
                zeros = [np.zeros(shape, x.type.dtype) for shape, x in zip(key, self.inputs, strict=True)]
                self._shapes[key] = [tuple(int(n) for n in shape) for shape in self._sizes(*zeros)]
            known = self._shapes[key]
        return [
            jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(y.type.dtype))
            for shape, y in zip(known, self.outputs, strict=True)
        ]

    def _call(self, promised: Sequence[jax.ShapeDtypeStruct], *given: Any) -> list[np.ndarray]:
        values = [np.asarray(x, v.type.dtype) for x, v in zip(given, self.inputs, strict=True)]
        batch = values[0].shape[: values[0].ndim - self.inputs[0].type.ndim] if values else ()
        if batch:
            flat = [x.reshape(-1, *x.shape[len(batch) :]) for x in values]
            found = [y.reshape(*batch, *y.shape[1:]) for y in self._batch(*flat)]
        else:
            found = [np.asarray(y) for y in self._single(*values)]
        for y, kind in zip(found, promised, strict=True):
            if y.shape[len(batch) :] != kind.shape:
                found_shape = y.shape[len(batch) :]
                raise ValueError(
                    f"{self.name}: a result has the shape {found_shape}, JAX was told {kind.shape}: the "
                    "size depends on values, which JAX cannot know; give the result a static shape"
                )
        return [np.asarray(y, kind.dtype) for y, kind in zip(found, promised, strict=True)]

    def __call__(self, *given: Any) -> list[Any]:
        """Results for JAX's arrays or tracers, with derivatives in reverse mode."""
        differentiable = jax.custom_vjp(self._forward)
        differentiable.defvjp(lambda *values: (self(*values), values), self._backward)
        results: list[Variable] = differentiable(*given)
        return results

    def _forward(self, *given: object) -> list[Any]:
        kinds = self._result_types(given)
        results: list[Variable] = jax.pure_callback(
            lambda *values: self._call(kinds, *values), kinds, *given, vmap_method="broadcast_all"
        )
        return results

    def _backward(self, given: Arrays, cotangents: Arrays) -> tuple[object, ...]:
        # JAX's cotangents of integers have the dtype float0; the graph does not read them.
        inner = [
            g if is_smooth(y) else np.zeros(np.shape(g), y.type.dtype)
            for g, y in zip(cotangents, self.outputs, strict=True)
        ]
        pullback, positions = self._pullback
        slopes = dict(zip(positions, pullback(*given, *inner), strict=True))
        return tuple(
            slopes[i].astype(x.dtype) if i in slopes else np.zeros(np.shape(x), jax.dtypes.float0)
            for i, x in enumerate(given)
        )


def to_jax(function: Function) -> Callable[..., Any]:
    """A compiled function of graphc as a function of JAX's arrays.

    It may be called inside ``jax.jit``, differentiated in reverse mode as often as one likes (``jax.grad``,
    ``jax.vjp``, ``jax.jacrev``; derivatives are graphc's) and mapped (``jax.vmap`` runs one compiled
    function over the batch). Not supported, as everywhere where JAX calls out of its own code: derivatives
    in forward mode, and work on JAX's accelerators. Precision is JAX's setting: enable ``jax_enable_x64``
    for float64. Shared variables of graphc have the values of the time of the call.

    Args:
        function: what `graphc.function` returned, without updates.

    Returns:
        A function of as many arrays as `function` has inputs; it returns an array, or a list of several.

    Raises:
        TypeError: the function updates shared variables, or has inputs or results that are not tensors.

    Source:
        ``jax.pure_callback`` and ``jax.custom_vjp``.
    """
    if function.updates:
        names = ", ".join(str(variable) for variable in function.updates)
        raise TypeError(f"a function of JAX cannot update graphc's shared variables ({names})")
    inputs = [item.variable for item in function.inputs]
    for variable in (*inputs, *function.outputs):
        if not isinstance(variable.type, graphc.tensor.TensorType):
            raise TypeError(f"JAX has no counterpart of {variable} of type {variable.type}")
    called = _Called(inputs, function.outputs, function.name or "function")

    def apply(*arguments: object) -> Any:
        if len(arguments) != len(inputs):
            raise TypeError(f"{called.name} takes {len(inputs)} inputs, given {len(arguments)}")
        arrays = [jax.numpy.asarray(x) for x in arguments]
        for x, variable in zip(arrays, inputs, strict=True):
            kind: Any = variable.type
            fits = x.ndim == kind.ndim and all(
                n in (None, m) for n, m in zip(kind.shape, x.shape, strict=True)
            )
            if not fits or not np.can_cast(x.dtype, kind.dtype, "same_kind"):
                raise TypeError(
                    f"{called.name}: the input {variable} has the type {kind}, given an array of dtype "
                    f"{x.dtype} and shape {x.shape}"
                )
        results = called(*arrays)
        return results[0] if function.signature.form.is_single else results

    return apply
