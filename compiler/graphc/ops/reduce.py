# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions: the operations, and their builders; ``Softmax`` and ``LogSoftmax``, which are made of them.

``axis`` is None, an integer or several; ``keepdims`` keeps reduced axes as size 1.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from graphc.graph.basic import Apply, Flags, Maybe, Variable, Variables, describe, frames_inside, only
from graphc.graph.op import Op, no_cotangents, no_tangents
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.ops.create import ones_like, zeros
from graphc.ops.derivatives import WithDerivativesOf
from graphc.ops.dimshuffle import attribute, normalize_axes, normalize_axis
from graphc.ops.elementwise import cast_to, pulled
from graphc.ops.join import concatenate
from graphc.ops.math import eq, exp, maximum, minimum, real, second, switch
from graphc.ops.shape import shape_source, size_of, sizes_of
from graphc.ops.shaping import dimshuffle, reshape
from graphc_runtime.symbols import DESCRIPTORS, kind_letter

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


Axis: TypeAlias = "AxisLike | Variable"

__all__ = ["all", "any", "argmax", "argmin", "max", "min", "prod", "sum"]

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


def extreme_of_nothing(kind: str, dtype: np.dtype) -> float:
    """Start of ``max`` and ``min``: an infinity where there is one."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if kind == "max" else np.iinfo(dtype).max
    if dtype.kind == "b":
        return kind == "min"
    return -np.inf if kind == "max" else np.inf


class Reduce(Op):
    """Combine the elements along axes, which are dropped. The result has the operand's dtype. Sums and
    products of float16, float32 and complex64 are accumulated in the next wider dtype.

    Args:
        kind: sum, prod, max, min, and, or. Extremes propagate NaN; and/or act on bits.
        axes: ascending axes.
        allow_empty: extremes of no numbers are those of `extreme_of_nothing`; otherwise they are an error.
    """

    takes_as_stored = False

    __props__ = ("kind", "axes", "allow_empty")

    def __init__(self, kind: str, axes: Sequence[int], allow_empty: bool = False) -> None:
        if kind not in _REFERENCES:
            raise ValueError(f"the kind of a reduction must be one of {', '.join(_REFERENCES)}, got {kind!r}")
        self.kind = kind
        self.axes = tuple(axes)
        self.allow_empty = allow_empty

    def _has_no_value(self, shape: Sequence[int | None]) -> bool:
        """True if nothing is reduced, and an extreme is asked for."""
        needs_one = self.kind in ("max", "min") and not self.allow_empty
        return needs_one and builtins.any(shape[axis] == 0 for axis in self.axes)

    def __str__(self) -> str:
        return f"{self.kind.capitalize()}{{axes={list(self.axes)}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        normalize_axes(self.axes, x.type.ndim, self.kind)
        kept = [size for axis, size in enumerate(x.type.shape) if axis not in self.axes]
        if self._has_no_value(x.type.shape):
            raise ValueError(
                f"{self.kind} over an empty axis has no value; the operand has shape {x.type.shape}"
            )
        return Apply(self, [x], [TensorType(x.type.dtype, kept).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        (x,) = inputs
        if self._has_no_value(x.shape):
            raise ValueError(
                f"{self.kind} over an empty axis has no value{describe(node.location)}: shape {x.shape}"
            )
        with np.errstate(all="ignore"):
            wide = _WIDE.get(x.dtype.name, x.dtype) if self.kind in ("sum", "prod") else x.dtype
            start = {"initial": extreme_of_nothing(self.kind, x.dtype)} if self.allow_empty else {}
            value = _REFERENCES[self.kind](x, axis=self.axes, dtype=wide, **start).astype(x.dtype)
        output_storage[0][0] = np.asarray(value, dtype=x.dtype)

    def _is_extreme(self, x: Variable, out: Variable) -> TensorVariable:
        """Positions of the elements that the result is: nothing depends on the others."""
        return eq(x, with_axes(out, self.axes, x.type.ndim))

    def _weight(self, x: Variable, out: Variable) -> TensorVariable | None:
        """Derivative of the result with respect to each element; None stands for 1."""
        ndim = x.type.ndim
        if self.kind == "sum":
            return None
        out = with_axes(out, self.axes, ndim)
        # With one zero along the axes only its own derivative is not 0; with more, all are.
        zero = eq(x, 0)
        zeros = sum(zero, axis=self.axes, keepdims=True)
        others = prod(switch(zero, 1, x), axis=self.axes, keepdims=True)
        at_zero = switch(eq(zeros, 1), others, 0)
        fast = switch(zero, at_zero, switch(eq(zeros, 0), out / x, 0))
        return WithDerivativesOf()(fast, self._others(x))

    def _others(self, x: Variable) -> Variable:
        """The product of the elements before each times that of those after it: zeros do no harm."""
        kept = [axis for axis in range(x.type.ndim) if axis not in self.axes]
        order = (*self.axes, *kept)
        moved = dimshuffle(x, order)
        rows = reshape(moved, [-1, *(size_of(x, axis) for axis in kept)])
        one = ones_like(rows[:1])
        before = concatenate([one, rows[:-1].cumprod(axis=0)])
        after = concatenate([rows[:0:-1].cumprod(axis=0)[::-1], one])
        whole = reshape(before * after, sizes_of(moved))
        return dimshuffle(whole, tuple(order.index(axis) for axis in range(x.type.ndim)))

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x,) = inputs
        g = with_axes(only(cotangents), self.axes, x.type.ndim)
        if self.kind in ("max", "min"):
            return [pulled(g, lambda g: switch(self._is_extreme(x, outputs[0]), g, 0))]
        weight = self._weight(x, outputs[0])
        if weight is None:
            return [second(shape_source(x), g)]
        return [pulled(g, lambda g: g * weight)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (x,), t = inputs, only(tangents)
        if self.kind in ("max", "min"):
            return [Reduce("sum", self.axes)(switch(self._is_extreme(x, outputs[0]), t, 0))]
        weight = self._weight(x, outputs[0])
        return [Reduce("sum", self.axes)(t if weight is None else t * weight)]

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        return [Reduce(self.kind, [axis + 1 for axis in self.axes], self.allow_empty)(inputs[0])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(node.inputs[0])]
        out_type = e.type_of(node.outputs[0])
        attributes = attribute("axes", self.axes) + (", allow_empty = true" if self.allow_empty else "")
        return [e.op(f"graphc.reduce_{self.kind}", operands, types, out_type, attributes)]


class ArgReduce(Op):
    """Position of the first extreme element along an axis, which is dropped; the first NaN counts as extreme.

    Args:
        kind: argmax or argmin.
        axis: the axis.
    """

    takes_as_stored = False

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

    pullback, pushforward = no_cotangents, no_tangents

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        return [ArgReduce(self.kind, self.axis + 1)(inputs[0])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(node.inputs[0])]
        attrs = f"axis = {self.axis} : i64"
        return [e.op(f"graphc.{self.kind}", operands, types, e.type_of(node.outputs[0]), attrs)]


def reduced_axes(axis: Axis, ndim: int, what: str) -> tuple[int, ...]:
    """Axes counted from 0. As in NumPy, a scalar has an axis 0, too."""
    scalar = ndim == 0 and axis in (0, -1, (0,), (-1,), [0], [-1])
    return () if scalar else normalize_axes(axis, ndim, what)


def reduced(
    kind: str, x: TensorVariable, axis: Axis, keepdims: bool, allow_empty: bool = False
) -> TensorVariable:
    axes = reduced_axes(axis, x.type.ndim, kind)
    if not axes and kind not in ("max", "min"):
        return x
    result = Reduce(kind, axes, allow_empty)(x) if axes else x
    return with_axes(result, axes, x.type.ndim) if keepdims else result


def with_axes(x: Variable, axes: Sequence[int], ndim: int) -> TensorVariable:
    """The result of a reduction with the axes that it removed."""
    kept = iter(range(ndim))
    return dimshuffle(x, tuple("x" if axis in axes else next(kept) for axis in range(ndim)))


def accumulated(
    kind: str,
    x: TensorLike,
    axis: Axis,
    dtype: DTypeLike | None,
    keepdims: bool,
    acc_dtype: DTypeLike | None,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> TensorVariable:
    x = as_tensor_variable(x)
    given = x.type.numpy_dtype
    if dtype is None:
        dtype = {"b": "int64", "i": "int64", "u": "uint64"}.get(given.kind, given.name)
    dtype = parse_dtype(dtype)
    if acc_dtype is not None:
        acc_dtype = parse_dtype(acc_dtype)
    elif given.kind == "c" and np.dtype(dtype).kind in "iuf":
        acc_dtype = given.name
    else:
        # Floats of two bytes hold too few digits to add up in.
        is_half = DESCRIPTORS[dtype].itemsize == 2 and kind_letter(DESCRIPTORS[dtype]) == "f"
        acc_dtype = "float32" if is_half else dtype
    total = reduced(kind, masked(cast_to(x, acc_dtype), where, kind == "prod"), axis, keepdims)
    if initial is not None:
        start = cast_to(as_tensor_variable(initial), total.type.dtype)
        total = total + start if kind == "sum" else total * start
    return as_dtype(total, dtype, kind)


def masked(x: TensorVariable, where: TensorLike | None, neutral: TensorLike) -> TensorVariable:
    """x with a neutral value in the place of what a reduction leaves out."""
    if where is None:
        return x
    return switch(where, x, cast_to(as_tensor_variable(neutral), x.type.dtype))


def _extreme(
    kind: str,
    x: TensorVariable,
    axis: Axis,
    keepdims: bool,
    initial: TensorLike | None,
    where: TensorLike | None,
) -> TensorVariable:
    """``max`` or ``min``. An initial value is one more element, so that there may be no others; where an
    element equals it, the element has the gradient.

    Raises:
        ValueError: a mask without an initial value.
    """
    if initial is None:
        if where is not None:
            raise ValueError(f"{kind} with where= needs initial=, the result where no element is selected")
        return reduced(kind, x, axis, keepdims)
    start = cast_to(as_tensor_variable(initial), x.type.dtype)
    x = masked(x, where, extreme_of_nothing(kind, x.type.numpy_dtype))
    found = reduced(kind, x, axis, keepdims, allow_empty=True)
    return maximum(found, start) if kind == "max" else minimum(found, start)


def as_dtype(x: TensorVariable, dtype: str, what: str) -> TensorVariable:
    """A result in the dtype that was asked for: of complex numbers the real part, with NumPy's warning."""
    if x.type.kind == "c" and np.dtype(dtype).kind in "iuf":
        warnings.warn(
            f"{what} of {x.type.dtype} with dtype={dtype!r} discards the imaginary part; take real(x) first",
            np.exceptions.ComplexWarning,
            stacklevel=frames_inside() + 1,
        )
        x = real(x)
    return cast_to(x, dtype)


def sum(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
    *,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Sum over axes.

    Args:
        input: array-like.
        axis: axes to add over; None for all.
        dtype: dtype of the result; by default int64 or uint64 for integers, else that of the input. A real
            one of complex numbers gives the real part, with a ``ComplexWarning``.
        keepdims: keep reduced axes with size 1.
        acc_dtype: dtype to add in; by default ``dtype``, but float32 for float16.
        initial: what to start from.
        where: which elements to add; broadcasts.

    Examples:
        >>> pt.sum([[1, 2], [3, 4]], axis=1).eval()
        array([3, 7])
    """
    return accumulated("sum", input, axis, dtype, keepdims, acc_dtype, initial, where)


def prod(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
    no_zeros_in_input: bool = False,
    *,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Product over axes; arguments as `sum`. ``no_zeros_in_input`` is accepted and needed for nothing.

    Examples:
        >>> pt.prod([[1, 2], [3, 4]], axis=1).eval()
        array([ 2, 12])
    """
    return accumulated("prod", input, axis, dtype, keepdims, acc_dtype, initial, where)


def max(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Largest element over axes; NaN wins. All equal largest elements get the whole gradient.

    Args:
        x: array-like.
        axis: axes; None for all.
        keepdims: keep reduced axes with size 1.
        initial: one more element; it has no gradient where another one is equal.
        where: which elements count; needs ``initial``.

    Examples:
        >>> pt.max([[1, 5], [7, 0]], axis=1).eval()
        array([5, 7])
    """
    return _extreme("max", as_tensor_variable(x), axis, keepdims, initial, where)


def min(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Smallest element over axes; NaN wins. All equal smallest elements get the whole gradient.

    Args:
        x: array-like.
        axis: axes; None for all.
        keepdims: keep reduced axes with size 1.
        initial: one more element; it has no gradient where another one is equal.
        where: which elements count; needs ``initial``.

    Examples:
        >>> pt.min([[1, 5], [7, 0]], axis=1).eval()
        array([1, 0])
    """
    return _extreme("min", as_tensor_variable(x), axis, keepdims, initial, where)


def any(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, *, where: TensorLike | None = None
) -> TensorVariable:
    """True if some element is nonzero; ``where`` says which elements count.

    Examples:
        >>> pt.any([[True, False], [False, False]], axis=1).eval()
        array([ True, False])
    """
    return reduced("or", masked(cast_to(as_tensor_variable(x), "bool"), where, False), axis, keepdims)


def all(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, *, where: TensorLike | None = None
) -> TensorVariable:
    """True if every element is nonzero; ``where`` says which elements count.

    Examples:
        >>> pt.all([[True, False], [True, True]], axis=1).eval()
        array([False,  True])
    """
    return reduced("and", masked(cast_to(as_tensor_variable(x), "bool"), where, True), axis, keepdims)


def _arg(kind: str, x: TensorLike, axis: Axis, keepdims: bool) -> TensorVariable:
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    axes = reduced_axes(axis, ndim, kind)
    if not axes:
        return zeros(x.shape, dtype="int64")
    if len(axes) == 1:
        result = ArgReduce(kind, axes[0])(x)
    else:
        # The position counts in row-major order over the reduced axes.
        kept = [a for a in range(ndim) if a not in axes]
        moved = dimshuffle(x, (*kept, *axes))
        result = ArgReduce(kind, len(kept))(reshape(moved, [*(size_of(x, a) for a in kept), -1]))
    return with_axes(result, axes, ndim) if keepdims else result


def argmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """Position (int64) of the first largest element; the first NaN counts as largest.

    Over several axes, or None for all, positions count in row-major order.

    Examples:
        >>> pt.argmax([[1, 5, 2], [7, 0, 3]], axis=1).eval()
        array([1, 0])
    """
    return _arg("argmax", x, axis, keepdims)


def argmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """Position (int64) of the first smallest element; the first NaN counts as smallest. Axes as `argmax`.

    Examples:
        >>> pt.argmin([[1, 5, 2], [7, 0, 3]], axis=1).eval()
        array([0, 1])
    """
    return _arg("argmin", x, axis, keepdims)


def _log_softmax(x: np.ndarray, axes: tuple[int, ...], guarded: bool = False) -> np.ndarray:
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
        shifted = x - (np.where(np.isfinite(top), top, 0) if guarded else top)
        return shifted - np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True))


class _Normalized(Op):
    """Base.

    Args:
        axes: axes over which the exponentials sum to 1, ascending.
    """

    takes_as_stored = False

    __props__: ClassVar[tuple[str, ...]] = ("axes",)
    _dialect = ""

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{axes={list(self.axes)}}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = operand(x, f"{type(self).__name__} takes real numbers", kinds="biuf", error=TypeError)
        if x.type.kind != "f":
            x = cast_to(x, "float64")
        normalize_axes(self.axes, x.type.ndim, type(self).__name__)
        return Apply(self, [x], [x.type.make_variable()])

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [self._forward(outputs[0], only(tangents))]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return [pulled(only(cotangents), lambda g: self._back(outputs[0], g), along=self.axes)]

    def _sum(self, x: Variable) -> Variable:
        return sum(x, axis=self.axes, keepdims=True)

    def _forward(self, out: Variable, t: Variable) -> Variable:
        raise NotImplementedError

    def _back(self, out: Variable, g: Variable) -> Variable:
        raise NotImplementedError

    def _attributes(self) -> str:
        return attribute("axes", self.axes)

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        options: dict[str, Any] = {**self._props_dict(), "axes": [axis + 1 for axis in self.axes]}
        return [type(self)(**options)(inputs[0])]

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types, out = [e.type_of(node.inputs[0])], e.type_of(node.outputs[0])
        return [e.op(f"graphc.{self._dialect}", operands, types, out, self._attributes())]


class Softmax(_Normalized):
    """exp(x) / sum(exp(x)) over axes, without overflow.

    Args:
        axes: as above.
        guarded: an infinite maximum is not subtracted: a row has NaN only where it is infinite itself, as the
            quotient has. So does the compiler's form of ``log(sum(exp(x)))``, which can then share the work.
    """

    _dialect = "softmax"
    __props__ = ("axes", "guarded")

    def __init__(self, axes: Sequence[int], guarded: bool = False) -> None:
        super().__init__(axes)
        self.guarded = guarded

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        logarithm = _log_softmax(inputs[0], self.axes, self.guarded)
        output_storage[0][0] = np.asarray(np.exp(logarithm), dtype=inputs[0].dtype)

    def _attributes(self) -> str:
        return super()._attributes() + (", guarded = true" if self.guarded else "")

    def _forward(self, out: Variable, t: Variable) -> Variable:
        return (t - self._sum(t * out)) * out

    def _back(self, out: Variable, g: Variable) -> Variable:
        return self._forward(out, g)


class LogSoftmax(_Normalized):
    """x - log(sum(exp(x))) over axes, without overflow."""

    _dialect = "log_softmax"

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = np.asarray(_log_softmax(inputs[0], self.axes), dtype=inputs[0].dtype)

    def _forward(self, out: Variable, t: Variable) -> Variable:
        return t - self._sum(t * exp(out))

    def _back(self, out: Variable, g: Variable) -> Variable:
        return g - self._sum(g) * exp(out)
