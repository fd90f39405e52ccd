# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions. The public functions with ``axis`` and ``keepdims`` are in ``graphc.tensor.reductions``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables
from graphc.graph.location import describe
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType
from graphc.ops.axes import attribute, normalize_axes, normalize_axis
from graphc.ops.derivatives import WithDerivativesOf
from graphc.ops.elementwise import is_discrete
from graphc.ops.math import cast, eq, second, switch
from graphc.ops.sizes import shape_source, size_of, sizes_of
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register

# What narrow floats are accumulated in.
_WIDE = {"float16": "float32", "float32": "float64", "complex64": "complex128"}
_REFERENCES: dict[str, Callable[..., Any]] = {
    "sum": np.add.reduce,
    "prod": np.multiply.reduce,
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
}


def _expand(y: Variable, axes: Sequence[int], ndim: int) -> TensorVariable:
    """``y`` with the reduced axes put back, of size 1."""
    kept = iter(range(ndim))
    return pt.dimshuffle(y, tuple("x" if axis in axes else next(kept) for axis in range(ndim)))


class Reduce(Op):
    """Combine the elements along axes, which are dropped. The result has the operand's dtype. Sums and
    products of float16, float32 and complex64 are accumulated in the next wider dtype.

    Args:
        kind: sum, prod, max, min, and, or. Extremes propagate NaN; and/or act on bits.
        axes: ascending axes.
    """

    __props__ = ("kind", "axes")

    def __init__(self, kind: str, axes: Sequence[int]) -> None:
        if kind not in _REFERENCES:
            raise ValueError(f"the kind of a reduction must be one of {', '.join(_REFERENCES)}, got {kind!r}")
        self.kind = kind
        self.axes = tuple(axes)

    def __str__(self) -> str:
        return f"{self.kind.capitalize()}{{axes={list(self.axes)}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axes(self.axes, x.type.ndim, self.kind)
        kept = [size for axis, size in enumerate(x.type.shape) if axis not in self.axes]
        if self.kind in ("max", "min") and any(x.type.shape[axis] == 0 for axis in self.axes):
            raise ValueError(
                f"{self.kind} over an empty axis has no value; the operand has shape {x.type.shape}"
            )
        return Apply(self, [x], [TensorType(x.type.dtype, kept).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (x,) = inputs
        if self.kind in ("max", "min") and any(x.shape[axis] == 0 for axis in self.axes):
            raise ValueError(
                f"{self.kind} over an empty axis has no value{describe(node.location)}: shape {x.shape}"
            )
        with np.errstate(all="ignore"):
            wide = _WIDE.get(x.dtype.name, x.dtype) if self.kind in ("sum", "prod") else x.dtype
            value = _REFERENCES[self.kind](x, axis=self.axes, dtype=wide).astype(x.dtype)
        output_storage[0][0] = np.asarray(value, dtype=x.dtype)

    def _weight(self, x: Variable, out: Variable) -> TensorVariable | None:
        """Derivative of the result with respect to each element; None stands for 1."""
        ndim = x.type.ndim
        if self.kind == "sum":
            return None
        out = _expand(out, self.axes, ndim)
        if self.kind in ("max", "min"):
            return cast(eq(x, out), x.type.dtype)
        # With one zero along the axes only its own derivative is not 0; with more, all are.
        zero = eq(x, 0)
        zeros = pt.sum(zero, axis=self.axes, keepdims=True)
        others = pt.prod(switch(zero, 1, x), axis=self.axes, keepdims=True)
        at_zero = switch(eq(zeros, 1), others, 0)
        fast = switch(zero, at_zero, switch(eq(zeros, 0), out / x, 0))
        return WithDerivativesOf()(fast, self._others(x))

    def _others(self, x: Variable) -> Variable:
        """The product of the elements before each times that of those after it: zeros do no harm."""
        kept = [axis for axis in range(x.type.ndim) if axis not in self.axes]
        order = (*self.axes, *kept)
        moved = pt.dimshuffle(x, order)
        rows = pt.reshape(moved, [-1, *(size_of(x, axis) for axis in kept)])
        one = pt.ones_like(rows[:1])
        before = pt.concatenate([one, pt.cumprod(rows[:-1], axis=0)])
        after = pt.concatenate([pt.cumprod(rows[:0:-1], axis=0)[::-1], one])
        whole = pt.reshape(before * after, sizes_of(moved))
        return pt.dimshuffle(whole, tuple(order.index(axis) for axis in range(x.type.ndim)))

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x,), (g,) = inputs, cotangents
        if g is None or is_discrete(x):
            return [None]
        g = _expand(g, self.axes, x.type.ndim)
        weight = self._weight(x, outputs[0])
        return [second(shape_source(x), g) if weight is None else g * weight]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (x,), (t,) = inputs, tangents
        if t is None or is_discrete(x):
            return [None]
        weight = self._weight(x, outputs[0])
        return [Reduce("sum", self.axes)(t if weight is None else t * weight)]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(node.inputs[0])]
        out_type = e.type_of(node.outputs[0])
        return [e.op(f"graphc.reduce_{self.kind}", operands, types, out_type, attribute("axes", self.axes))]


class ArgReduce(Op):
    """Position of the first extreme element along an axis, which is dropped; the first NaN counts as extreme.

    Args:
        kind: argmax or argmin.
        axis: the axis.
    """

    __props__ = ("kind", "axis")

    def __init__(self, kind: str, axis: int) -> None:
        if kind not in ("argmax", "argmin"):
            raise ValueError(f"expected argmax or argmin, got {kind!r}")
        self.kind = kind
        self.axis = axis

    def __str__(self) -> str:
        return f"{self.kind.capitalize()}{{axis={self.axis}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axis(self.axis, x.type.ndim, self.kind)
        if x.type.shape[self.axis] == 0:
            raise ValueError(
                f"{self.kind} over an empty axis has no value; the operand has shape {x.type.shape}"
            )
        kept = [size for axis, size in enumerate(x.type.shape) if axis != self.axis]
        return Apply(self, [x], [TensorType("int64", kept).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (x,) = inputs
        if x.shape[self.axis] == 0:
            raise ValueError(
                f"{self.kind} over an empty axis has no value{describe(node.location)}: shape {x.shape}"
            )
        output_storage[0][0] = np.asarray(getattr(np, self.kind)(x, axis=self.axis), dtype=np.int64)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [None]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [None]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(node.inputs[0])]
        attrs = f"axis = {self.axis} : i64"
        return [e.op(f"graphc.{self.kind}", operands, types, e.type_of(node.outputs[0]), attrs)]
