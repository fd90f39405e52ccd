# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of ``graphc.tensor``: ``axis`` is None, an integer or several; ``keepdims`` keeps reduced axes
as size 1.
"""

from __future__ import annotations

import builtins
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

import numpy as np

from graphc.gradient import zero_grad
from graphc.graph.basic import Variable, remember
from graphc.graph.location import frames_inside
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import parse_dtype
from graphc.ops.axes import normalize_axes
from graphc.ops.elementwise import cast_to
from graphc.ops.math import abs as abs_
from graphc.ops.math import eq, exp, imag, isclose, isinf, log, maximum, real, sqr, sqrt, switch
from graphc.ops.reduce import ArgReduce, Reduce
from graphc.ops.sizes import size_of
from graphc.public import pt

if TYPE_CHECKING:
    from graphc.graph.tensor.like import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

Axis: TypeAlias = "AxisLike | Variable"

__all__ = [
    "all",
    "allclose",
    "any",
    "argmax",
    "argmin",
    "logsumexp",
    "max",
    "max_and_argmax",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _axes(axis: Axis, ndim: int, what: str) -> tuple[int, ...]:
    """Axes counted from 0. As in NumPy, a scalar has an axis 0, too."""
    scalar = ndim == 0 and axis in (0, -1, (0,), (-1,), [0], [-1])
    return () if scalar else normalize_axes(axis, ndim, what)


def _reduce(kind: str, x: TensorVariable, axis: Axis, keepdims: bool) -> TensorVariable:
    axes = _axes(axis, x.type.ndim, kind)
    if not axes and kind not in ("max", "min"):
        return x
    result = Reduce(kind, axes)(x) if axes else x
    return _keep(result, axes, x.type.ndim) if keepdims else result


def _keep(x: TensorVariable, axes: tuple[int, ...], ndim: int) -> TensorVariable:
    kept = iter(range(ndim))
    return pt.dimshuffle(x, tuple("x" if axis in axes else next(kept) for axis in range(ndim)))


def _accumulate(
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
        # float16 holds too few digits to add up in.
        acc_dtype = "float32" if dtype == "float16" else dtype
    total = _reduce(kind, _masked(cast_to(x, acc_dtype), where, kind == "prod"), axis, keepdims)
    if initial is not None:
        start = cast_to(as_tensor_variable(initial), total.type.dtype)
        total = total + start if kind == "sum" else total * start
    return _as_dtype(total, dtype, kind)


def _masked(x: TensorVariable, where: TensorLike | None, neutral: TensorLike) -> TensorVariable:
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
    """``max`` or ``min``. An initial value is one more element, so that there may be no others.

    Raises:
        ValueError: a mask without an initial value.
    """
    if initial is None:
        if where is not None:
            raise ValueError(f"{kind} with where= needs initial=, the result where no element is selected")
        return _reduce(kind, x, axis, keepdims)
    start = cast_to(as_tensor_variable(initial), x.type.dtype)
    axes = _axes(axis, x.type.ndim, kind)
    x = _masked(x, where, start)
    kept = [a for a in range(x.type.ndim) if a not in axes]
    sizes = [size_of(x, a) for a in kept]
    rows = pt.reshape(pt.dimshuffle(x, (*kept, *axes)), [*sizes, -1 if axes else 1], ndim=len(kept) + 1)
    if sizes:
        start = pt.alloc(start, *sizes, 1)
    rows = pt.concatenate([rows, start if sizes else pt.reshape(start, (1,))], axis=len(kept))
    found = _reduce(kind, rows, len(kept), False)
    return _keep(found, axes, x.type.ndim) if keepdims else found


def _as_dtype(x: TensorVariable, dtype: str, what: str) -> TensorVariable:
    """A result in the dtype that was asked for: of complex numbers the real part, with NumPy's warning."""
    if x.type.numpy_dtype.kind == "c" and np.dtype(dtype).kind in "iuf":
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
    return _accumulate("sum", input, axis, dtype, keepdims, acc_dtype, initial, where)


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
    return _accumulate("prod", input, axis, dtype, keepdims, acc_dtype, initial, where)


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
        initial: one more element.
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
        initial: one more element.
        where: which elements count; needs ``initial``.

    Examples:
        >>> pt.min([[1, 5], [7, 0]], axis=1).eval()
        array([1, 0])
    """
    return _extreme("min", as_tensor_variable(x), axis, keepdims, initial, where)


def any(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, *, where: TensorLike | None = None
) -> TensorVariable:
    """Whether some element is nonzero; ``where`` says which elements count.

    Examples:
        >>> pt.any([[True, False], [False, False]], axis=1).eval()
        array([ True, False])
    """
    return _reduce("or", _masked(cast_to(as_tensor_variable(x), "bool"), where, False), axis, keepdims)


def all(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, *, where: TensorLike | None = None
) -> TensorVariable:
    """Whether every element is nonzero; ``where`` says which elements count.

    Examples:
        >>> pt.all([[True, False], [True, True]], axis=1).eval()
        array([False,  True])
    """
    return _reduce("and", _masked(cast_to(as_tensor_variable(x), "bool"), where, True), axis, keepdims)


def allclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorVariable:
    """Whether all elements agree within tolerances, as ``numpy.allclose``.

    Examples:
        >>> pt.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]).eval()
        array(True)
    """
    return all(isclose(x, y, rtol, atol, equal_nan))


def _arg(kind: str, x: TensorLike, axis: Axis, keepdims: bool) -> TensorVariable:
    x = as_tensor_variable(x)
    ndim = x.type.ndim
    axes = _axes(axis, ndim, kind)
    if not axes:
        return pt.zeros(x.shape, dtype="int64")
    if len(axes) == 1:
        result = ArgReduce(kind, axes[0])(x)
    else:
        # The position counts in row-major order over the reduced axes.
        kept = [a for a in range(ndim) if a not in axes]
        moved = pt.dimshuffle(x, (*kept, *axes))
        result = ArgReduce(kind, len(kept))(pt.reshape(moved, [*(size_of(x, a) for a in kept), -1]))
    return _keep(result, axes, ndim) if keepdims else result


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


def max_and_argmax(a: TensorLike, axis: Axis = None, keepdims: bool = False) -> list[TensorVariable]:
    """The largest element and its position.

    Examples:
        >>> [v.eval().tolist() for v in pt.max_and_argmax([3, 9, 5])]
        [9, 1]
    """
    return [max(a, axis, keepdims), argmax(a, axis, keepdims)]


def ptp(a: TensorLike, axis: Axis = None) -> TensorVariable:
    """Difference of the largest and the smallest element.

    Examples:
        >>> pt.ptp([3, 9, 5]).eval()
        array(6)
    """
    a = as_tensor_variable(a)
    return max(a, axis) - min(a, axis)


def _count(
    x: Variable,
    axes: tuple[int, ...],
    dtype: str,
    where: TensorLike | None = None,
    keepdims: bool = False,
) -> TensorVariable:
    """Number of elements over the axes, as a 0-d variable; with a mask one for each result."""
    if where is not None:
        selected = switch(where, pt.ones_like(x, "int64"), 0)
        return cast_to(_reduce("sum", selected, axes, keepdims), dtype)
    sizes = [x.type.shape[axis] for axis in axes]
    if None not in sizes:  # also where there are no axes
        return remember(constant(np.asarray(np.prod(sizes, dtype=np.float64), dtype)), x)
    count = size_of(x, axes[0])
    for axis in axes[1:]:
        count = count * size_of(x, axis)
    return cast_to(count, dtype)


def _working_dtype(
    x: TensorVariable, dtype: DTypeLike | None, acc_dtype: DTypeLike | None
) -> tuple[str, str]:
    """Dtypes of the result and of the arithmetic of a mean."""
    if dtype is None:
        dtype = x.type.dtype if x.type.numpy_dtype.kind in "fc" else "float64"
    dtype = parse_dtype(dtype)
    work = dtype if np.dtype(dtype).kind in "fc" else "float64"
    if acc_dtype is not None:
        work = parse_dtype(acc_dtype)
    elif x.type.numpy_dtype.kind == "c" and np.dtype(work).kind == "f":
        work = x.type.dtype
    return dtype, "float32" if work == "float16" else work


def mean(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
    *,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Arithmetic mean over axes; of integers, a float64. Arguments as `sum`: ``dtype`` is that of the sum
    that is divided, so that of integers is a float64, too.

    Examples:
        >>> pt.mean([[1.0, 2.0], [3.0, 6.0]], axis=1).eval()
        array([1.5, 4.5])
    """
    x = as_tensor_variable(input)
    axes = _axes(axis, x.type.ndim, "mean")
    if dtype is not None and np.dtype(parse_dtype(dtype)).kind in "biu":
        total = _accumulate("sum", x, axes, dtype, keepdims, acc_dtype, where=where)
        return cast_to(total, "float64") / _count(x, axes, "float64", where, keepdims)
    dtype, work = _working_dtype(x, dtype, acc_dtype)
    x = cast_to(x, work)
    if not axes and where is None:
        return _as_dtype(x, dtype, "mean")
    total = _reduce("sum", _masked(x, where, 0), axes, keepdims)
    return _as_dtype(total / _count(x, axes, work, where, keepdims), dtype, "mean")


def var(
    input: TensorLike,
    axis: Axis = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
    *,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Variance over axes.

    Args:
        input: array-like.
        axis: axes; None for all.
        ddof: the sum of squares is divided by the number of elements less ``ddof``.
        keepdims: keep reduced axes with size 1.
        corrected: accepted for compatibility; the deviations are always taken from the mean.
        where: which elements count; broadcasts.

    Examples:
        >>> pt.var([1.0, 3.0]).eval()
        array(1.)
    """
    x = as_tensor_variable(input)
    dtype, work = _working_dtype(x, None, None)
    axes = _axes(axis, x.type.ndim, "var")
    x = cast_to(x, work)
    deviation = _masked(x - mean(x, axes, keepdims=True, where=where), where, 0)
    if deviation.type.numpy_dtype.kind == "c":
        squares = sqr(real(deviation)) + sqr(imag(deviation))
        dtype = work = squares.type.dtype
    else:
        squares = sqr(deviation)
    if not axes and where is None:
        return cast_to(squares, dtype)
    count = _count(x, axes, work, where, keepdims)
    total = _reduce("sum", squares, axes, keepdims)
    if ddof:  # as NumPy, what has too few elements is divided by 0
        count = maximum(count - constant(np.asarray(ddof, work)), np.asarray(0, work))
    return cast_to(total / count, dtype)


def std(
    input: TensorLike,
    axis: Axis = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
    *,
    where: TensorLike | None = None,
) -> TensorVariable:
    """Standard deviation over axes; arguments as `var`.

    Examples:
        >>> pt.std([1.0, 3.0]).eval()
        array(1.)
    """
    return sqrt(var(input, axis, ddof, keepdims, corrected, where=where))


@overload
def logsumexp(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    b: TensorLike | None = None,
    return_sign: Literal[False] = False,
) -> TensorVariable: ...
@overload
def logsumexp(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    b: TensorLike | None = None,
    return_sign: Literal[True],
) -> tuple[TensorVariable, TensorVariable]: ...
def logsumexp(
    x: TensorLike,
    axis: Axis = None,
    keepdims: bool = False,
    *,
    b: TensorLike | None = None,
    return_sign: bool = False,
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    """log(sum(b * exp(x))) over axes, without overflow.

    Where all elements are -inf the result is -inf and the slopes are 0, as in PyTorch: what cannot happen
    in a forward pass over states must not make the gradient of all others NaN.

    Args:
        x: array-like.
        axis: axes; None for all.
        keepdims: keep reduced axes with size 1.
        b: factors of the exponentials, which may be 0 or negative; broadcasts with x.
        return_sign: return the logarithm of the absolute value, and the sign (of complex sums, the sum
            divided by its absolute value). Without it the logarithm of a negative sum is NaN.

    Source: ``scipy.special.logsumexp``.

    Examples:
        >>> pt.logsumexp([1000.0, 1000.0]).round(6).eval()
        array(1000.693147)
        >>> pt.logsumexp([0.0, 0.0], b=[3.0, -1.0]).eval()
        array(0.69314718)
    """
    return _logsumexp(as_tensor_variable(x), axis, keepdims, b, return_sign)


def _logsumexp(
    x: TensorVariable, axis: Axis, keepdims: bool, b: TensorLike | None, return_sign: bool
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    if b is not None:
        x, b = pt.broadcast_arrays(x, b)
    if x.type.numpy_dtype.kind not in "fc":
        x = cast_to(x, "float64")
    if b is not None:
        x = switch(eq(b, 0), np.array(-np.inf, x.type.dtype), x)
    axes = _axes(axis, x.type.ndim, "logsumexp")
    # The shift cancels out, in the derivative too.
    top = zero_grad(max(real(x) if x.type.numpy_dtype.kind == "c" else x, axes, keepdims=True))
    top = switch(isinf(top), 0, top)
    terms = exp(x - top)
    total = sum(terms if b is None else b * terms, axes, keepdims=True)
    nothing = eq(total, 0)
    total = switch(nothing, 1, total)
    sign = None
    if return_sign:
        size = abs_(total)
        sign = switch(nothing, 0, total / size)
        total = size
    result = switch(nothing, -np.inf, log(total)) + top
    if not keepdims:
        kept = [a for a in builtins.range(x.type.ndim) if a not in axes]
        result = pt.dimshuffle(result, kept)
        sign = None if sign is None else pt.dimshuffle(sign, kept)
    return result if sign is None else (result, sign)
