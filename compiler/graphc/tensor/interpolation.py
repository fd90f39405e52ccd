# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interpolation of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import clip, gt, le, lt, switch
from graphc.ops.sizes import size_of
from graphc.tensor.sorting import argsort, searchsorted

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "interpolate1d",
]


_METHODS = ("linear", "nearest", "first", "last", "mean")


def interpolate1d(
    x: TensorLike,
    y: TensorLike,
    method: str = "linear",
    left_pad: TensorLike | None = None,
    right_pad: TensorLike | None = None,
    extrapolate: bool = True,
) -> Callable[[TensorLike], TensorVariable]:
    """A function that interpolates points, which are sorted first.

    Args:
        x, y: vectors of one length.
        method: "linear"; "nearest"; "first" or "last": the point on the left or on the right; "mean" of both.
        left_pad, right_pad: values before and after all points where ``extrapolate`` is False; by
            default those of the first and the last point.
        extrapolate: whether the method goes on there.

    Returns:
        A function of arrays of any shape.

    Examples:
        >>> pt.interpolate1d(np.array([0.0, 1.0]), np.array([0.0, 10.0]))(0.5).eval()
        array(5.)
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if x.type.ndim != 1 or y.type.ndim != 1:
        raise ValueError(f"interpolate1d takes two vectors, got {x.type} and {y.type}")
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    order = argsort(x)
    x, y = x[order], y[order]
    ends = [y[0] if left_pad is None else left_pad, y[-1] if right_pad is None else right_pad]

    def interpolate(x_hat: TensorLike) -> TensorVariable:
        at = as_tensor_variable(x_hat)
        place = searchsorted(x, at)
        last = size_of(x, 0) - 1
        right = clip(place, 1, last)
        left = right - 1
        if method == "linear":
            found = y[left] + (at - x[left]) / (x[right] - x[left]) * (y[right] - y[left])
        elif method == "nearest":
            found = switch(le(at - x[left], x[right] - at), y[left], y[right])
        elif method == "mean":
            found = (y[left] + y[right]) / 2
        else:
            found = y[clip(place - 1 if method == "first" else place, 0, last)]
        if extrapolate:
            return found
        found = switch(lt(at, x[0]), ends[0], found)
        return switch(gt(at, x[-1]), ends[1], found)

    return interpolate
