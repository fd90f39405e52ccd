# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of ``graphc.tensor`` that are made of those of ``graphc.ops.reduce``."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Literal, overload

import numpy as np

from graphc.gradient import zero_grad
from graphc.graph.basic import Variable, remember
from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.graph.tensor.type import parse_dtype
from graphc.ops.create import ones_like
from graphc.ops.elementwise import cast_to
from graphc.ops.math import abs as abs_
from graphc.ops.math import eq, exp, imag, isclose, isinf, log, maximum, real, sqr, sqrt, switch
from graphc.ops.reduce import (
    Axis,
    accumulated,
    all,
    argmax,
    as_dtype,
    masked,
    max,
    min,
    reduced,
    reduced_axes,
    sum,
)
from graphc.ops.shape import size_of
from graphc.ops.shaping import broadcast_arrays, dimshuffle

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["allclose", "logsumexp", "max_and_argmax", "mean", "ptp", "std", "var"]


def allclose(
    x: TensorLike, y: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorVariable:
    """True if all elements agree within tolerances, as ``numpy.allclose``.

    Examples:
        >>> pt.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]).eval()
        array(True)
    """
    return all(isclose(x, y, rtol, atol, equal_nan))


def max_and_argmax(a: TensorLike, axis: Axis = None, keepdims: bool = False) -> list[TensorVariable]:
    """The largest element and its position.

    Examples:
        >>> [v.eval().tolist() for v in pt.max_and_argmax([3, 9, 5])]
        [9, 1]
    """
    return [max(a, axis, keepdims), argmax(a, axis, keepdims)]


def ptp(a: TensorLike, axis: Axis = None, keepdims: bool = False) -> TensorVariable:
    """Difference of the largest and the smallest element.

    Examples:
        >>> pt.ptp([3, 9, 5]).eval()
        array(6)
    """
    a = as_tensor_variable(a)
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def _count(
    x: Variable, axes: tuple[int, ...], dtype: str, where: TensorLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """Number of elements over the axes, as a 0-d variable; with a mask one for each result."""
    if where is not None:
        selected = switch(where, ones_like(x, "int64"), 0)
        return cast_to(reduced("sum", selected, axes, keepdims), dtype)
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
        dtype = x.type.dtype if x.type.kind in "fc" else "float64"
    dtype = parse_dtype(dtype)
    work = dtype if np.dtype(dtype).kind in "fc" else "float64"
    if acc_dtype is not None:
        work = parse_dtype(acc_dtype)
    elif x.type.kind == "c" and np.dtype(work).kind == "f":
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
    axes = reduced_axes(axis, x.type.ndim, "mean")
    if dtype is not None and np.dtype(parse_dtype(dtype)).kind in "biu":
        total = accumulated("sum", x, axes, dtype, keepdims, acc_dtype, where=where)
        return cast_to(total, "float64") / _count(x, axes, "float64", where, keepdims)
    dtype, work = _working_dtype(x, dtype, acc_dtype)
    x = cast_to(x, work)
    if not axes and where is None:
        return as_dtype(x, dtype, "mean")
    total = reduced("sum", masked(x, where, 0), axes, keepdims)
    return as_dtype(total / _count(x, axes, work, where, keepdims), dtype, "mean")


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
    axes = reduced_axes(axis, x.type.ndim, "var")
    x = cast_to(x, work)
    deviation = masked(x - mean(x, axes, keepdims=True, where=where), where, 0)
    if deviation.type.kind == "c":
        squares = sqr(real(deviation)) + sqr(imag(deviation))
        dtype = work = squares.type.dtype
    else:
        squares = sqr(deviation)
    if not axes and where is None:
        return cast_to(squares, dtype)
    count = _count(x, axes, work, where, keepdims)
    total = reduced("sum", squares, axes, keepdims)
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
    in a forward pass over states must not make the gradient of all others NaN. It is -inf over no elements.

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
    x = as_tensor_variable(x)
    if b is not None:
        x, b = broadcast_arrays(x, b)
    if x.type.kind not in "fc":
        x = cast_to(x, "float64")
    if b is not None:
        x = switch(eq(b, 0), np.array(-np.inf, x.type.dtype), x)
    axes = reduced_axes(axis, x.type.ndim, "logsumexp")
    # The shift cancels out, in the derivative too.
    top = zero_grad(reduced("max", real(x) if x.type.kind == "c" else x, axes, True, allow_empty=True))
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
        result = dimshuffle(result, kept)
        sign = None if sign is None else dimshuffle(sign, kept)
    return result if sign is None else (result, sign)
