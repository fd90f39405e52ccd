# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that go along an axis: running sums and extremes, differences, numerical
derivatives, sums over intervals, interpolation, convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import parse_dtype
from graphc.hooks import publish
from graphc.ops.checks import required
from graphc.ops.create import full as full_
from graphc.ops.cumulative import Cumulative, Running
from graphc.ops.dimshuffle import normalize_axes, normalize_axis
from graphc.ops.elementwise import cast_to, floating
from graphc.ops.join import concatenate
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    cast,
    clip,
    conj,
    eq,
    floor_div,
    ge,
    gt,
    isfinite,
    isnan,
    le,
    lt,
    maximum,
    minimum,
    mod,
    ne,
    switch,
)
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import dimshuffle, expand_dims, moveaxis, on_axis, ravel, specify_shape
from graphc.ops.table.arithmetic import promote
from graphc.tensor.dims import slice_at_axis
from graphc.tensor.sorting import argsort, searchsorted
from graphc.tensor.statistics import _replaced

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _running(kind: str, x: TensorVariable, axis: AxisLike) -> TensorVariable:
    x, axis = on_axis(x, axis if x.type.ndim else None, f"cumulative {kind}")
    if axis == 0:
        return Cumulative(kind)(x)
    if axis == x.type.ndim - 1:
        return Running(kind)(x)
    return moveaxis(Cumulative(kind)(moveaxis(x, axis, 0)), 0, axis)


def _accumulated(kind: str, x: TensorLike, axis: AxisLike, dtype: DTypeLike | None) -> TensorVariable:
    x = as_tensor_variable(x)
    if dtype is None:
        given = x.type.numpy_dtype
        dtype = {"b": "int64", "i": "int64", "u": "uint64"}.get(given.kind, given.name)
    return _running(kind, cast_to(x, parse_dtype(dtype)), axis)


def cumsum(x: TensorLike, axis: AxisLike = None, dtype: DTypeLike | None = None) -> TensorVariable:
    """Running sums along an axis.

    Args:
        x: array-like.
        axis: the axis; None for the flattened array.
        dtype: dtype to add in; by default int64 or uint64 for integers, else that of x.

    Examples:
        >>> pt.cumsum([1, 2, 3]).eval()
        array([1, 3, 6])
    """
    return _accumulated("add", x, axis, dtype)


def cumprod(x: TensorLike, axis: AxisLike = None, dtype: DTypeLike | None = None) -> TensorVariable:
    """Running products; arguments as `cumsum`. The derivative divides by nothing, so zeros are welcome.

    Examples:
        >>> pt.cumprod([1, 2, 3]).eval()
        array([1, 2, 6])
    """
    return _accumulated("mul", x, axis, dtype)


def cummax(x: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """Largest element so far (``numpy.maximum.accumulate``); NaN wins.

    Examples:
        >>> pt.cummax([1, 3, 2]).eval()
        array([1, 3, 3])
    """
    return _running("max", as_tensor_variable(x), axis)


def cummin(x: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """Smallest element so far (``numpy.minimum.accumulate``); NaN wins.

    Examples:
        >>> pt.cummin([3, 1, 2]).eval()
        array([3, 1, 1])
    """
    return _running("min", as_tensor_variable(x), axis)


def nancumsum(x: TensorLike, axis: AxisLike = None, dtype: str | None = None) -> TensorVariable:
    """`cumsum` with NaN counted as 0.

    Examples:
        >>> pt.nancumsum([2.0, np.nan, 3.0]).eval()
        array([2., 2., 5.])
    """
    return cumsum(_replaced(x, 0), axis, dtype)


def nancumprod(x: TensorLike, axis: AxisLike = None, dtype: str | None = None) -> TensorVariable:
    """`cumprod` with NaN counted as 1.

    Examples:
        >>> pt.nancumprod([2.0, np.nan, 3.0]).eval()
        array([2., 2., 6.])
    """
    return cumprod(_replaced(x, 1), axis, dtype)


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> TensorVariable:
    """Differences of neighbours along an axis, ``n`` times; of booleans, whether they differ.

    Args:
        x: array-like.
        n: how often; at least 0.
        axis: the axis.
        prepend, append: what is put before and after first; a number or an array.

    Examples:
        >>> pt.diff([1, 4, 9]).eval()
        array([3, 5])
    """
    x = operand(x, "diff needs at least one dimension", 1)
    if n < 0:
        raise ValueError(f"diff takes the difference n >= 0 times, got {n}")
    axis = normalize_axis(axis, x.type.ndim, "diff")
    if n == 0:
        return x
    if prepend is not None or append is not None:
        parts = [_border(p, x, axis) for p in (prepend,) if p is not None] + [x]
        parts += [_border(p, x, axis) for p in (append,) if p is not None]
        x = concatenate(parts, axis=axis)
    for _ in range(n):
        later, earlier = x[slice_at_axis(slice(1, None), axis)], x[slice_at_axis(slice(-1), axis)]
        x = ne(later, earlier) if x.type.dtype == "bool" else later - earlier
    return x


def _border(value: TensorLike, x: TensorVariable, axis: int) -> TensorVariable:
    value = as_tensor_variable(value)
    if value.type.ndim:
        return value
    sizes = [size_of(x, a) if a != axis else 1 for a in range(x.type.ndim)]
    return full_(sizes, cast_to(value, promote(value.type.numpy_dtype, x.type.numpy_dtype).name))


def ediff1d(
    ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None
) -> TensorVariable:
    """Differences of neighbours of the flattened array, between given vectors.

    Examples:
        >>> pt.ediff1d([1, 4, 9], to_end=[0]).eval()
        array([3, 5, 0])
    """
    parts = [diff(ravel(as_tensor_variable(ary)))]
    if to_begin is not None:
        parts.insert(0, cast(ravel(as_tensor_variable(to_begin)), parts[-1].type.dtype))
    if to_end is not None:
        parts.append(cast(ravel(as_tensor_variable(to_end)), parts[-1].type.dtype))
    return parts[0] if len(parts) == 1 else concatenate(parts)


def trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1
) -> TensorVariable:
    """Integral by the trapezoidal rule.

    Args:
        y: values.
        x: where they are; None for equal distances ``dx``. A vector, or an array of y's rank.
        dx: the distance.
        axis: the axis to integrate over.

    Examples:
        >>> pt.trapezoid([1.0, 2.0, 3.0]).eval()
        array(4.)
    """
    y = as_tensor_variable(y)
    axis = normalize_axis(axis, y.type.ndim, "trapezoid")
    width: TensorLike = dx
    if x is not None:
        x = as_tensor_variable(x)
        width = diff(x, axis=0 if x.type.ndim == 1 else axis)
        if x.type.ndim == 1:
            width = dimshuffle(width, tuple(0 if a == axis else "x" for a in range(y.type.ndim)))
    heights = y[slice_at_axis(slice(1, None), axis)] + y[slice_at_axis(slice(-1), axis)]
    return sum_(width * heights / 2.0, axis=axis)


def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: TensorLike | None = None,
    right: TensorLike | None = None,
    period: TensorLike | None = None,
) -> TensorVariable:
    """Piecewise linear interpolation of the points ``(xp, fp)``, with ``xp`` ascending.

    Args:
        x: where to interpolate, of any shape.
        xp, fp: vectors of one length, at least 1.
        left, right: the value before and after all points; by default that of the nearest.
        period: the period of x; points are sorted then.

    Examples:
        >>> pt.interp([1.5], [1.0, 2.0], [10.0, 20.0]).eval()
        array([15.])
    """
    x, xp, fp = (as_tensor_variable(v) for v in (x, xp, fp))
    floats = promote(x.type.numpy_dtype, xp.type.numpy_dtype, np.dtype(config.floatX)).name
    x, xp = cast_to(x, floats), cast_to(xp, floats)
    fp = cast_to(fp, promote(fp.type.numpy_dtype, np.dtype(floats)).name)
    xp = _filled(xp, "interp")
    fp = specify_shape(fp, [size_of(xp, 0)])
    if period is not None:
        period = required(
            as_tensor_variable(period), lambda p: abs(p) > 0, "the period of interp must not be 0"
        )
        # As in NumPy, the sign of a period means nothing.
        period = abs_(period)
        left = right = None
        x, xp = mod(x, period), mod(xp, period)
        order = argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    last = size_of(xp, 0) - 1
    after = clip(searchsorted(xp, x, side="right"), 1, maximum(last, 1))
    after = minimum(after, last)
    before = maximum(after - 1, 0)
    x0, f0 = xp[before], fp[before]
    width = xp[after] - x0
    width = switch(eq(width, 0), 1, width)
    slope, part = (fp[after] - f0) / width, (x - x0) / width
    # Infinities have no slope.
    beside = switch(eq(x, x0), f0, f0 * (1 - part) + fp[after] * part)
    result = switch(isfinite(slope), f0 + slope * (x - x0), beside)
    result = switch(lt(x, xp[0]), fp[0] if left is None else left, result)
    result = switch(ge(x, xp[-1]), fp[-1], result)
    if right is not None:
        result = switch(gt(x, xp[-1]), right, result)
    return switch(isnan(x), x, result)


def unwrap(
    p: TensorLike, discont: TensorLike | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> TensorVariable:
    """Angles without jumps of more than half a period: multiples of the period are added.

    Args:
        p: array-like.
        discont: smallest jump that counts, by default half the period.
        axis: the axis.
        period: the period.

    Examples:
        >>> pt.unwrap([0.0, 6.0, 12.0]).round(4).eval()
        array([ 0.    , -0.2832, -0.5664])
    """
    p = as_tensor_variable(p)
    axis = normalize_axis(axis, p.type.ndim, "unwrap")
    if p.type.kind != "f":
        p = cast_to(p, config.floatX)
    steps = diff(p, axis=axis)
    half = period / 2
    wrapped = mod(steps + half, period) - half
    wrapped = switch(eq(wrapped, -half) & gt(steps, 0), half, wrapped)
    change = wrapped - steps
    change = switch(lt(abs_(steps), half if discont is None else discont), 0, change)
    first, rest = p[slice_at_axis(slice(1), axis)], p[slice_at_axis(slice(1, None), axis)]
    return concatenate([first, rest + cumsum(change, axis)], axis=axis)


def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> TensorVariable:
    """Convolution of two vectors.

    Args:
        a, v: vectors, not empty.
        mode: ``full``: wherever they overlap; ``same``: the middle part, as long as the longer one;
            ``valid``: where they overlap completely.

    Examples:
        >>> pt.convolve([1, 2, 3], [1, 1]).eval()
        array([1, 3, 5, 3])
    """
    return _middle(*_vectors(a, v, "convolve"), mode, mirrored=False)


def correlate(a: TensorLike, v: Variable, mode: str = "valid") -> TensorVariable:
    """Cross-correlation of two vectors, ``c[k] = sum(a[n + k] * conj(v[n]))``; arguments as `convolve`.

    Examples:
        >>> pt.correlate([1, 2, 3], [0, 1]).eval()
        array([2, 3])
    """
    a, v = _vectors(a, v, "correlate")
    return _middle(a, conj(v[::-1]), mode, mirrored=True)


def _vectors(a: TensorLike, v: TensorLike, what: str) -> tuple[TensorVariable, TensorVariable]:
    a, v = (operand(x, f"{what} takes two vectors", 1, 1) for x in (a, v))
    return _filled(a, what), _filled(v, what)


def _filled(x: TensorVariable, what: str) -> TensorVariable:
    """A vector that must not be empty."""
    size = size_of(x, 0)
    return required(x, lambda _: gt(size, 0), f"{what} takes vectors that are not empty")


def _middle(a: Variable, v: Variable, mode: str, mirrored: bool) -> TensorVariable:
    """The part of the full convolution that a mode asks for."""
    from graphc.tensor.signal import convolve1d

    full = convolve1d(a, v, mode="full")
    if mode == "full":
        return full
    m, n = size_of(a, 0), size_of(v, 0)
    short, long = minimum(m, n), maximum(m, n)
    if mode == "valid":
        return full[short - 1 : long]
    if mode != "same":
        raise ValueError(f"mode must be full, same or valid, got {mode!r}")
    # NumPy mirrors a correlation whose second vector is longer, and with it the middle.
    start = floor_div(short - 1, 2)
    if mirrored:
        start = switch(gt(n, m), floor_div(short, 2), start)
    return full[start : start + long]


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
    x, y = (operand(v, "interpolate1d takes two vectors", 1, 1) for v in (x, y))
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    order = argsort(x)
    x, y = x[order], specify_shape(y, [size_of(x, 0)])[order]
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
    f: TensorLike, *varargs: TensorLike, axis: AxisLike = None, edge_order: int = 1
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
    f = floating(f)
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


publish(globals())
