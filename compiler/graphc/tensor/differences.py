# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numerical derivatives of samples.

Interpolation of points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.dimshuffle import normalize_axes
from graphc.ops.join import concatenate
from graphc.ops.math import cast, clip, gt, le, lt, switch
from graphc.ops.shape import size_of
from graphc.ops.shaping import expand_dims, moveaxis
from graphc.tensor.accumulating import diff
from graphc.tensor.sorting import argsort, searchsorted

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


__all__ = ["gradient", "interpolate1d"]


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


def gradient(
    f: Any, *varargs: TensorLike, axis: AxisLike = None, edge_order: int = 1
) -> TensorVariable | tuple[TensorVariable, ...]:
    """Derivatives along axes by second order differences, as ``numpy.gradient``.

    Args:
        f: samples; integers become float64. Axes have at least ``edge_order + 1`` of them.
        varargs: nothing (distances of 1), one distance for all axes, or for each axis a distance or a vector
            of positions.
        axis: the axis or axes; by default all.
        edge_order: order of the differences at the ends, 1 or 2.

    Returns:
        An array for one axis, else a tuple of arrays.

    Examples:
        >>> pt.gradient([1.0, 4.0, 9.0]).eval()
        array([3., 4., 5.])
    """
    f = as_tensor_variable(f)
    if f.type.kind in "biu":
        f = cast(f, "float64")
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order must be 1 or 2, got {edge_order}")
    axes = normalize_axes(axis, f.type.ndim, "gradient")
    spacings: list[Any] = [as_tensor_variable(h) for h in varargs] or [1.0]
    if len(spacings) == 1 and not (varargs and spacings[0].type.ndim):
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient takes one distance, or one for each of {len(axes)} axes; got {len(varargs)}"
        )
    results = []
    for each, h in zip(axes, spacings, strict=True):
        size = f.type.shape[each]
        if size is not None and size < edge_order + 1:
            raise ValueError(
                f"gradient needs at least {edge_order + 1} samples along axis {each}, got {size}"
            )
        rule = _uneven if isinstance(h, Variable) and h.type.ndim else _even
        found = rule(moveaxis(f, each, -1), h, edge_order)
        results.append(moveaxis(found, -1, each))
    return results[0] if len(axes) == 1 else tuple(results)


def _even(f: TensorVariable, h: TensorVariable | float, edge_order: int) -> TensorVariable:
    if isinstance(h, Variable):
        h = cast(h, f.type.dtype)
    inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
    if edge_order == 1:
        first, last = f[..., 1] - f[..., 0], f[..., -1] - f[..., -2]
    else:
        first = -1.5 * f[..., 0] + 2.0 * f[..., 1] - 0.5 * f[..., 2]
        last = 1.5 * f[..., -1] - 2.0 * f[..., -2] + 0.5 * f[..., -3]
    return _with_ends(first / h, inner, last / h)


def _uneven(f: TensorVariable, x: TensorVariable, edge_order: int) -> TensorVariable:
    """The three-point formulas for positions at unequal distances; those of a parabola at the ends."""
    h = diff(cast(x, f.type.dtype))
    left, right = h[:-1], h[1:]
    inner = (
        -right / (left * (left + right)) * f[..., :-2]
        + (right - left) / (left * right) * f[..., 1:-1]
        + left / (right * (left + right)) * f[..., 2:]
    )
    if edge_order == 1:
        return _with_ends((f[..., 1] - f[..., 0]) / h[0], inner, (f[..., -1] - f[..., -2]) / h[-1])
    a, b = h[0], h[1]
    first = (
        -(2 * a + b) / (a * (a + b)) * f[..., 0]
        + (a + b) / (a * b) * f[..., 1]
        - a / (b * (a + b)) * f[..., 2]
    )
    a, b = h[-2], h[-1]
    last = (
        b / (a * (a + b)) * f[..., -3] - (b + a) / (a * b) * f[..., -2]
        + (2 * b + a) / (b * (a + b)) * f[..., -1]
    )  # fmt: skip
    return _with_ends(first, inner, last)


def _with_ends(first: TensorVariable, inner: TensorVariable, last: TensorVariable) -> TensorVariable:
    return concatenate([expand_dims(first, -1), inner, expand_dims(last, -1)], axis=-1)
