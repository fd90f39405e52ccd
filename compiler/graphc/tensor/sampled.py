# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of sampled data: numerical derivatives, interpolation, histograms of several variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.axes import normalize_axes
from graphc.ops.matrices import float_dtype
from graphc.ops.sizes import product_of, size_of
from graphc.public import pt
from graphc.tensor.sets import _edges

__all__ = ["gradient", "histogram2d", "histogramdd", "interpolate1d", "lexsort", "piecewise"]


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes by second order differences, as ``numpy.gradient``.

    Args:
        f: samples; integers become float64. Axes have at least ``edge_order + 1`` of them.
        varargs: nothing (distances of 1), one distance for all axes, or for each axis a distance or a vector
            of positions.
        axis: the axis or axes; by default all.
        edge_order: order of the differences at the ends, 1 or 2.

    Returns:
        An array for one axis, else a tuple of arrays.
    """
    f = as_tensor_variable(f)
    if f.type.numpy_dtype.kind in "biu":
        f = pt.cast(f, "float64")
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order must be 1 or 2, got {edge_order}")
    axes = normalize_axes(axis, f.type.ndim, "gradient")
    spacings = [as_tensor_variable(h) for h in varargs] or [1.0]
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
        rule = _uneven if isinstance(h, Variable) and h.type.ndim else _even  # type: ignore[attr-defined]
        found = rule(pt.moveaxis(f, each, -1), h, edge_order)
        results.append(pt.moveaxis(found, -1, each))
    return results[0] if len(axes) == 1 else tuple(results)


def _even(f: Any, h: Any, edge_order: int) -> Any:
    if isinstance(h, Variable):
        h = pt.cast(h, f.type.dtype)
    inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
    if edge_order == 1:
        first, last = f[..., 1] - f[..., 0], f[..., -1] - f[..., -2]
    else:
        first = -1.5 * f[..., 0] + 2.0 * f[..., 1] - 0.5 * f[..., 2]
        last = 1.5 * f[..., -1] - 2.0 * f[..., -2] + 0.5 * f[..., -3]
    return _with_ends(first / h, inner, last / h)


def _uneven(f: Any, x: Any, edge_order: int) -> Any:
    """The three-point formulas for positions at unequal distances; those of a parabola at the ends."""
    h = pt.diff(pt.cast(x, f.type.dtype))
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


def _with_ends(first: Any, inner: Any, last: Any) -> Any:
    return pt.concatenate([pt.expand_dims(first, -1), inner, pt.expand_dims(last, -1)], axis=-1)


_METHODS = ("linear", "nearest", "first", "last", "mean")


def interpolate1d(
    x: Any,
    y: Any,
    method: str = "linear",
    left_pad: Any = None,
    right_pad: Any = None,
    extrapolate: bool = True,
) -> Callable[[Any], Variable]:
    """A function that interpolates points, which are sorted first.

    Args:
        x, y: vectors of one length.
        method: "linear"; "nearest"; "first" or "last": the point on the left or on the right; "mean" of both.
        left_pad, right_pad: values in front of and behind all points where ``extrapolate`` is False; by
            default those of the first and the last point.
        extrapolate: whether the method goes on there.

    Returns:
        A function of arrays of any shape.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if x.type.ndim != 1 or y.type.ndim != 1:
        raise ValueError(f"interpolate1d takes two vectors, got {x.type} and {y.type}")
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    order = pt.argsort(x)
    x, y = x[order], y[order]
    ends = [y[0] if left_pad is None else left_pad, y[-1] if right_pad is None else right_pad]

    def interpolate(x_hat: Any) -> Variable:
        at = as_tensor_variable(x_hat)
        place = pt.searchsorted(x, at)
        last = size_of(x, 0) - 1
        right = pt.clip(place, 1, last)
        left = right - 1
        if method == "linear":
            found = y[left] + (at - x[left]) / (x[right] - x[left]) * (y[right] - y[left])
        elif method == "nearest":
            found = pt.switch(pt.le(at - x[left], x[right] - at), y[left], y[right])
        elif method == "mean":
            found = (y[left] + y[right]) / 2
        else:
            found = y[pt.clip(place - 1 if method == "first" else place, 0, last)]
        if extrapolate:
            return found
        found = pt.switch(pt.lt(at, x[0]), ends[0], found)
        return pt.switch(pt.gt(at, x[-1]), ends[1], found)

    return interpolate


def lexsort(keys: Any, axis: int = -1) -> Variable:
    """Positions that sort by several keys, of which the last one counts most.

    Args:
        keys: arrays of one shape, or one array with them along its first axis of known size.
        axis: the axis of a key.
    """
    if isinstance(keys, Sequence):
        parts = [as_tensor_variable(key) for key in keys]
    else:
        parts = list(pt.unstack(keys))
    order = pt.argsort(parts[0], axis=axis)
    for key in parts[1:]:
        following = pt.argsort(pt.take_along_axis(key, order, axis=axis), axis=axis)
        order = pt.take_along_axis(order, following, axis=axis)
    return order


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Variable:
    """A function that is given by pieces; all of them are computed everywhere.

    Args:
        x: array-like.
        condlist: conditions of x's shape; the last one that holds counts.
        funclist: for each a function of x or a number; one more is for what is left, 0 by default.
        args, kw: further arguments of the functions.
    """
    x = as_tensor_variable(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"with {len(conditions)} conditions there are as many functions, or one more")
    pieces = [f(x, *args, **kw) if callable(f) else f for f in funclist]
    rest = pieces[-1] if len(pieces) > len(conditions) else 0
    result: Any = pt.second(x, pt.cast(as_tensor_variable(rest), x.type.dtype))
    for condition, piece in zip(conditions, pieces, strict=False):
        result = pt.switch(condition, pt.cast(as_tensor_variable(piece), x.type.dtype), result)
    return result


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Variable, list[Variable]]:
    """How many points lie in each cell of a grid, as ``numpy.histogramdd``.

    Args:
        sample: array (N, D) of points with D known, or D vectors.
        bins: number of bins along each axis, or a number or a vector of edges for each of them.
        range: lowest and highest edge for each axis.
        density: divide by the number of points and the volumes, so that the integral is 1.
        weights: vector (N) of what is summed instead of counted.

    Returns:
        float64 counts with D axes, and D vectors of edges.
    """
    if isinstance(sample, list | tuple):
        columns = [as_tensor_variable(v) for v in sample]
    else:
        columns = list(pt.unstack(sample, axis=1))
    per_axis = [bins] * len(columns) if isinstance(bins, int | np.integer) else list(bins)
    limits = [None] * len(columns) if range is None else list(range)
    if len(per_axis) != len(columns) or len(limits) != len(columns):
        raise ValueError(f"there must be bins for each of {len(columns)} axes")
    edges, flat, inside = [], None, None
    for values, count, limit in zip(columns, per_axis, limits, strict=True):
        mine, _ = _edges(values, count, limit)
        dtype = float_dtype(values.type.dtype, mine.type.dtype)
        v, e = pt.cast(values, dtype), pt.cast(mine, dtype)
        number = size_of(e, 0) - 1
        place = pt.minimum(pt.searchsorted(e, v, side="right") - 1, number - 1)
        within = pt.ge(v, e[0]) & pt.le(v, e[-1])
        flat = place if flat is None else flat * number + place
        inside = within if inside is None else inside & within
        edges.append(mine)
    sizes = [size_of(e, 0) - 1 for e in edges]
    total = product_of(sizes)
    counted = pt.bincount(pt.switch(inside, flat, total), weights, minlength=total + 1)[:total]
    result: Any = pt.cast(pt.reshape(counted, sizes), "float64")
    if density:
        for i, e in enumerate(edges):
            widths = pt.cast(pt.diff(e), "float64")
            result = result / pt.expand_dims(widths, tuple(j for j, _ in enumerate(edges) if j != i))
        result = result / pt.sum(counted)
    return result, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Variable, Variable, Variable]:
    """`histogramdd` of points (x, y): the counts, the edges along x, the edges along y.

    A vector as ``bins`` is for both axes; a pair is for one axis each.
    """
    both = isinstance(bins, list | tuple) and len(bins) == 2
    per_axis = bins if both or isinstance(bins, int | np.integer) else [bins, bins]
    counts, (first, second) = histogramdd([x, y], per_axis, range, density, weights)
    return counts, first, second
