# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and cumulative functions of the array API standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import graphc.tensor as pt
from graphc.array_api.types import as_array
from graphc.hooks import publish

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _name(dtype: DTypeLike | None) -> str | None:
    return None if dtype is None else np.dtype(dtype).name


def all(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """True if all elements are nonzero."""
    return pt.all(x, axis, keepdims)


def any(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """True if some element is nonzero."""
    return pt.any(x, axis, keepdims)


def max(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Largest elements."""
    return pt.max(x, axis, keepdims)


def min(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Smallest elements."""
    return pt.min(x, axis, keepdims)


def mean(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Arithmetic means."""
    return pt.mean(x, axis, keepdims=keepdims)


def sum(
    x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """Sums; those of small integers are int64 or uint64."""
    return pt.sum(x, axis, _name(dtype), keepdims)


def prod(
    x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """Products; those of small integers are int64 or uint64."""
    return pt.prod(x, axis, _name(dtype), keepdims)


def _spread(x: TensorLike, axis: AxisLike, correction: float, keepdims: bool) -> TensorVariable:
    if isinstance(correction, int) or float(correction).is_integer():
        return pt.var(x, axis, int(correction), keepdims)
    x = as_array(x)
    square = pt.sum(pt.square(x - pt.mean(x, axis, keepdims=True)), axis, keepdims=keepdims)
    count = pt.sum(pt.ones_like(x), axis, keepdims=keepdims)
    return square / (count - correction)


def var(
    x: TensorLike, /, *, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False
) -> TensorVariable:
    """Variances; the divisor is the number of elements less ``correction``."""
    return _spread(x, axis, correction, keepdims)


def std(
    x: TensorLike, /, *, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False
) -> TensorVariable:
    """Standard deviations; ``correction`` as in `var`."""
    return pt.sqrt(_spread(x, axis, correction, keepdims))


def count_nonzero(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Variable:
    """Numbers of elements that are not zero."""
    return pt.count_nonzero(x, axis, keepdims)


def diff(
    x: TensorLike, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> TensorVariable:
    """Differences of neighbours along an axis, ``n`` times; other arrays may be put before and after."""
    return pt.diff(x, n, axis, prepend, append)


def _running(name: str, x: Any, axis: AxisLike, dtype: Any, first: int | None) -> TensorVariable:
    """``pt.cumsum`` or ``pt.cumprod`` along an axis, after ``first`` where that is not None.

    Raises:
        ValueError: no axis of several.
    """
    x = as_array(x)
    if axis is None and x.ndim != 1:
        raise ValueError(f"cumulative_{name} needs an axis for an array of {x.ndim} dimensions")
    axis = 0 if axis is None else axis
    found = getattr(pt, f"cum{name}")(x, axis, _name(dtype))
    if first is None:
        return found
    zero = pt.sum(pt.zeros_like(found), axis, keepdims=True)
    return pt.concatenate([pt.cast(zero + first, found.dtype), found], axis=axis)


def cumulative_sum(
    x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> TensorVariable:
    """Running sums along an axis, which must be given unless there is just one."""
    return _running("sum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike | None = None, include_initial: Any = False
) -> TensorVariable:
    """Running products along an axis, which must be given unless there is just one."""
    return _running("prod", x, axis, dtype, 1 if include_initial else None)


publish(globals())
