# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Statistics of ``graphc.tensor``: of order, covariances and correlations, reductions that pass over NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.checks import required
from graphc.ops.counting import Gather, Partition, Sort
from graphc.ops.create import alloc
from graphc.ops.dimshuffle import normalize_axes, normalize_axis
from graphc.ops.elementwise import cast_to, floating
from graphc.ops.join import concatenate, stack
from graphc.ops.math import abs as abs_
from graphc.ops.math import (
    cast,
    ceil,
    clip,
    conj,
    eq,
    floor,
    floor_div,
    ge,
    gt,
    imag,
    isfinite,
    isinf,
    isnan,
    maximum,
    real,
    sqr,
    sqrt,
    switch,
)
from graphc.ops.math import complex as complex_
from graphc.ops.math import round as round_
from graphc.ops.reduce import any as any_
from graphc.ops.reduce import argmax, argmin, prod
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import min as min_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import dimshuffle, expand_dims, moveaxis, ravel, reshape, specify_shape
from graphc.tensor.products import dot
from graphc.tensor.rearranging import diagonal
from graphc.tensor.reductions import mean
from graphc.tensor.reductions import mean as mean_

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
) -> TensorVariable:
    """Covariance matrix of variables.

    Args:
        m: vector, or matrix with a variable in each row.
        y: more variables, of the same form.
        rowvar: whether variables are rows; else they are columns.
        bias: divide by the number of observations instead of one less.
        ddof: the number that is subtracted from that of observations; overrides ``bias``.

    Examples:
        >>> pt.cov([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).eval()
        array([[ 1., -2.],
               [-2.,  4.]])
    """
    rows = _variables(m, rowvar)
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar)], axis=0)
    deviation = rows - mean(rows, axis=1, keepdims=True)
    less = (0 if bias else 1) if ddof is None else index(ddof)
    count = cast(maximum(size_of(rows, 1) - less, 0), "float64")
    result = dot(deviation, conj(deviation).T) / count
    scalar = known_size(size_of(rows, 0)) == 1
    return result[0, 0] if scalar else result


def _variables(m: TensorLike, rowvar: bool) -> TensorVariable:
    x = operand(m, "cov takes a vector or a matrix", 0, 2)
    x = cast_to(x, "complex128" if x.type.kind == "c" else "float64")
    if x.type.ndim < 2:
        return reshape(x, [1, -1])
    return x if rowvar else x.T


def corrcoef(x: TensorLike, y: TensorLike | None = None, rowvar: bool = True) -> TensorVariable:
    """Correlation coefficients of variables; arguments as `cov`.

    Examples:
        >>> pt.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).eval().round(6)
        array([[ 1., -1.],
               [-1.,  1.]])
    """
    c = cov(x, y, rowvar)
    if c.type.ndim == 0:
        return c / c
    deviation = sqrt(diagonal(real(c)))
    c = c / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    if c.type.kind == "c":
        return complex_(clip(real(c), -1, 1), clip(imag(c), -1, 1))
    return clip(c, -1, 1)


# So many quantiles are selected instead of sorting everything.
FEW = 4
# Hyndman and Fan (1996): a quantile q of n elements lies at ``n q + a + (1 - a - b) q - 1``. The numbers a
# and b, and where it is taken to lie instead.
METHODS: dict[str, tuple[float, float, Callable[[TensorVariable], TensorVariable]]] = {
    "linear": (1, 1, lambda place: place),
    "lower": (1, 1, floor),
    "higher": (1, 1, ceil),
    "nearest": (1, 1, round_),
    "midpoint": (1, 1, lambda place: (floor(place) + ceil(place)) / 2),
    "inverted_cdf": (0, 1, ceil),
    "averaged_inverted_cdf": (0, 1, lambda place: (ceil(place) + floor(place + 1)) / 2),
    "closest_observation": (0, 1, lambda place: round_(place + 1) - 1),
    "interpolated_inverted_cdf": (0, 1, lambda place: place),
    "hazen": (1 / 2, 1 / 2, lambda place: place),
    "weibull": (0, 0, lambda place: place),
    "median_unbiased": (1 / 3, 1 / 3, lambda place: place),
    "normal_unbiased": (3 / 8, 3 / 8, lambda place: place),
}


def _joined_last(x: TensorVariable, axis: AxisLike, what: str) -> tuple[TensorVariable, tuple[int, ...]]:
    """The axes joined into one, after the others; also the axes."""
    axes = normalize_axes(axis, x.type.ndim, what)
    if len(axes) == 1:
        return moveaxis(x, axes[0], -1), axes
    kept = [a for a in range(x.type.ndim) if a not in axes]
    moved = dimshuffle(x, (*kept, *axes)) if (*kept, *axes) != tuple(range(x.type.ndim)) else x
    return reshape(moved, [*(size_of(x, a) for a in kept), -1]), axes


def _kept(result: TensorVariable, axes: tuple[int, ...], ndim: int, lead: int = 0) -> TensorVariable:
    """The reduced axes put back, of size 1, after ``lead`` other axes."""
    rest = iter(range(lead, lead + ndim))
    return dimshuffle(result, (*range(lead), *("x" if axis in axes else next(rest) for axis in range(ndim))))


def _with_nan(result: TensorVariable, rows: TensorVariable) -> TensorVariable:
    """NaN where a row has one."""
    return switch(any_(isnan(rows), axis=-1), np.array(np.nan, result.type.dtype), result)


def median(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Middle element over axes, or the mean of the two in the middle; NaN where there is a NaN.

    Args:
        x: array-like of real numbers; integers give a float64.
        axis: axes; None for all.
        keepdims: keep reduced axes with size 1.

    Examples:
        >>> pt.median([3.0, 1.0, 2.0]).eval()
        array(2.)
    """
    x = floating(x)
    rows, axes = _joined_last(x, axis, "median")
    count = size_of(rows, rows.type.ndim - 1)
    lower, upper = maximum(floor_div(count - 1, 2), 0), floor_div(count, 2)
    ranks = stack([lower, upper])
    ranks = ranks if known_size(count) else ranks[: switch(eq(count, 0), 0, 2)]
    middle = Partition()(rows, ranks)[..., lower : upper + 1]
    if not known_size(count):
        # In place of elements that are not there.
        sizes = [*sizes_of(middle)[:-1], switch(eq(count, 0), 1, 0)]
        middle = concatenate([middle, alloc(np.asarray(np.nan, x.type.dtype), *sizes)], axis=-1)
    low, high = middle[..., 0], middle[..., -1]
    # Half of the derivative belongs to each of two equal elements, too; infinities have no difference.
    same = switch(isinf(low), low, low + (high - low) / 2)
    result = _with_nan(switch(eq(low, high), same, (low + high) / 2), rows)
    return _kept(result, axes, x.type.ndim) if keepdims else result


def _between(ordered: TensorVariable, place: TensorVariable) -> TensorVariable:
    """Elements of sorted rows at places that are no integers; the places are along a new first axis.

    Args:
        ordered: sorted rows.
        place: for each quantile, and row if its rank is that of the rows, where it lies.
    """
    below = floor(place)
    low, high = (_at(ordered, cast(p, "int64")) for p in (below, ceil(place)))
    weight = place - below
    weight = cast_to(cast(weight, low.type.dtype), low.type.dtype)
    if weight.type.ndim == 1 and low.type.ndim > 1:
        weight = dimshuffle(weight, (0, *["x"] * (low.type.ndim - 1)))
    difference = high - low
    near = low + difference * weight
    far = high - difference * (1 - weight)
    # The form that is exact at its end; infinities have no difference, and that of large numbers overflows.
    mixed = switch(ge(weight, 0.5), far, near)
    mixed = switch(isfinite(difference), mixed, low * (1 - weight) + high * weight)
    return switch(eq(weight, 0), low, mixed)


def _at(ordered: TensorVariable, positions: TensorVariable) -> TensorVariable:
    """Elements at positions of the last axis, which comes first then."""
    if positions.type.ndim == 1:
        return moveaxis(ordered[..., positions], -1, 0)
    return moveaxis(Gather()(ordered, moveaxis(positions, 0, -1)), -1, 0)


def _ranks(place: TensorVariable) -> TensorVariable:
    """The ranks of the elements around places, ascending."""
    return cast(Sort()(concatenate([floor(place), ceil(place)])), "int64")


def quantile(
    x: Any, q: Any, axis: AxisLike = None, method: str = "linear", keepdims: bool = False, **kwargs: Any
) -> TensorVariable:
    """Elements below which a fraction of all lies.

    Args:
        x: array-like of real numbers; NaN makes the result NaN.
        q: fractions from 0 to 1, a number or an array; may be symbolic.
        axis: axes; None for all.
        method: where a quantile lies, and what happens between two elements: one of NumPy's thirteen.
        keepdims: keep reduced axes with size 1.

    Raises:
        ValueError: a fraction that is none, here or when run.

    Returns:
        The quantiles; those of an array ``q`` along new first axes.

    Examples:
        >>> pt.quantile([1.0, 2.0, 3.0], 0.5).eval()
        array(2.)
    """
    return _quantile(floating(x), q, axis, kwargs.pop("interpolation", method), keepdims, False)


def _quantile(
    x: TensorVariable, q: TensorLike, axis: AxisLike, method: str, keepdims: bool, skip: bool, whole: int = 1
) -> TensorVariable:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    q = as_tensor_variable(q)
    names = "quantiles" if whole == 1 else "percentiles"
    q = required(q, lambda q: (q >= 0) & (q <= whole), f"{names} must be in the range from 0 to {whole}")
    q = q if whole == 1 else q / 100.0
    fractions = ravel(cast_to(q, "float64" if x.type.dtype != "float32" else "float32"))
    rows, axes = _joined_last(x, axis, "quantile")
    count = size_of(rows, rows.type.ndim - 1)
    if skip:
        count = sum_(~isnan(rows), axis=-1)
        fractions = dimshuffle(fractions, (0, *["x"] * count.type.ndim))
        count = maximum(count, 1)
    place = _place(fractions, cast(count, fractions.type.dtype), method)
    few = not skip and fractions.type.shape[0] is not None and fractions.type.shape[0] <= FEW
    ordered = Partition()(rows, _ranks(place)) if few else Sort()(rows)
    result = _between(ordered, place)
    if not skip:
        result = _with_nan(result, rows)
    result = _kept(result, axes, x.type.ndim, 1) if keepdims else result
    return reshape(result, [*sizes_of(q), *sizes_of(result)[1:]]) if q.type.ndim != 1 else result


def _place(fractions: TensorVariable, count: TensorVariable, method: str) -> TensorVariable:
    """Places of quantiles in sorted rows of ``count`` elements."""
    a, b, taken = METHODS[method]
    if a == b == 1:
        return taken(fractions * (count - 1))
    return clip(taken(count * fractions + (a + fractions * (1 - a - b)) - 1), 0, maximum(count - 1, 0))


def percentile(
    x: Any, q: Any, axis: AxisLike = None, method: str = "linear", keepdims: bool = False, **kwargs: Any
) -> TensorVariable:
    """`quantile` with ``q`` in percent.

    Examples:
        >>> pt.percentile([0.0, 10.0, 20.0], [25, 50]).eval()
        array([ 5., 10.])
    """
    return _quantile(floating(x), q, axis, kwargs.pop("interpolation", method), keepdims, False, 100)


# -- passing over NaN ----------------------------------------------------------------------------------------


def _replaced(x: TensorLike, value: TensorLike) -> TensorVariable:
    x = as_tensor_variable(x)
    if x.type.kind not in "fc":
        return x
    return switch(isnan(x), np.asarray(value, x.type.dtype), x)


def _present(x: TensorVariable) -> TensorVariable:
    """Flags of the elements that are numbers."""
    return ~isnan(x)


def nansum(
    x: TensorLike, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """`sum` with NaN counted as 0.

    Examples:
        >>> pt.nansum([np.nan, 1.0, 3.0]).eval()
        array(4.)
    """
    return sum_(_replaced(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(
    x: TensorLike, axis: AxisLike = None, dtype: DTypeLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """`prod` with NaN counted as 1.

    Examples:
        >>> pt.nanprod([np.nan, 2.0, 3.0]).eval()
        array(6.)
    """
    return prod(_replaced(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _extreme(x: TensorLike, axis: AxisLike, keepdims: bool, largest: bool) -> TensorVariable:
    x = as_tensor_variable(x)
    reduce = max_ if largest else min_
    kind, least = x.type.kind, -np.inf if largest else np.inf
    if kind not in "fc":
        return reduce(x, axis=axis, keepdims=keepdims)
    found = reduce(
        _replaced(x, complex(least, least) if kind == "c" else least), axis=axis, keepdims=keepdims
    )
    some = any_(_present(x), axis=axis, keepdims=keepdims)
    return switch(some, found, np.array(np.nan, x.type.dtype))


def nanmax(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Largest element that is not NaN; NaN where there is none.

    Examples:
        >>> pt.nanmax([np.nan, 1.0, 2.0]).eval()
        array(2.)
    """
    return _extreme(x, axis, keepdims, True)


def nanmin(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Smallest element that is not NaN; NaN where there is none.

    Examples:
        >>> pt.nanmin([np.nan, 1.0, 2.0]).eval()
        array(1.)
    """
    return _extreme(x, axis, keepdims, False)


def nanargmax(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Position of `nanmax`; 0 where all are NaN.

    Examples:
        >>> pt.nanargmax([np.nan, 1.0, 2.0]).eval()
        array(2)
    """
    return argmax(_replaced(x, -np.inf), axis=axis, keepdims=keepdims)


def nanargmin(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Position of `nanmin`; 0 where all are NaN.

    Examples:
        >>> pt.nanargmin([np.nan, 1.0, 2.0]).eval()
        array(1)
    """
    return argmin(_replaced(x, np.inf), axis=axis, keepdims=keepdims)


def _mean_of_present(
    x: Variable, present: TensorVariable, axis: AxisLike, keepdims: bool, ddof: int = 0
) -> TensorVariable:
    """The sum of the elements that are present over their number less ``ddof``; a NaN among them counts."""
    count = sum_(present, axis=axis, keepdims=keepdims) - ddof
    real = {"complex64": "float32", "complex128": "float64"}.get(x.type.dtype, x.type.dtype)
    kept = switch(present, x, np.zeros((), x.type.dtype))
    mean = sum_(kept, axis=axis, keepdims=keepdims) / cast(count, real)
    return mean if ddof == 0 else switch(gt(count, 0), mean, np.array(np.nan, mean.type.dtype))


def nanmean(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """`mean` of the elements that are not NaN.

    Examples:
        >>> pt.nanmean([np.nan, 1.0, 2.0]).eval()
        array(1.5)
    """
    x = floating(x)
    return _mean_of_present(x, _present(x), axis, keepdims)


def nanvar(x: TensorLike, axis: AxisLike = None, ddof: int = 0, keepdims: bool = False) -> TensorVariable:
    """`var` of the elements that are not NaN.

    Examples:
        >>> pt.nanvar([np.nan, 1.0, 5.0]).eval()
        array(4.)
    """
    x = floating(x)
    deviation = x - nanmean(x, axis=axis, keepdims=True)
    squares = sqr(abs_(deviation)) if x.type.kind == "c" else sqr(deviation)
    return _mean_of_present(squares, _present(x), axis, keepdims, ddof)


def nanstd(x: TensorLike, axis: AxisLike = None, ddof: int = 0, keepdims: bool = False) -> TensorVariable:
    """`std` of the elements that are not NaN.

    Examples:
        >>> pt.nanstd([np.nan, 1.0, 3.0]).eval()
        array(1.)
    """
    return sqrt(nanvar(x, axis=axis, ddof=ddof, keepdims=keepdims))


def nanmedian(x: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """`median` of the elements that are not NaN; NaN where there is none.

    Examples:
        >>> pt.nanmedian([np.nan, 1.0, 2.0]).eval()
        array(1.5)
    """
    return nanquantile(x, 0.5, axis, "midpoint", keepdims)


def nanquantile(
    x: TensorLike, q: TensorLike, axis: AxisLike = None, method: str = "linear", keepdims: bool = False
) -> TensorVariable:
    """`quantile` of the elements that are not NaN; NaN where there is none.

    Examples:
        >>> pt.nanquantile([np.nan, 1.0, 3.0], 0.25).eval()
        array(1.5)
    """
    return _quantile(floating(x), q, axis, method, keepdims, True)


def nanpercentile(
    x: TensorLike, q: TensorLike, axis: AxisLike = None, method: str = "linear", keepdims: bool = False
) -> TensorVariable:
    """`nanquantile` with ``q`` in percent.

    Examples:
        >>> pt.nanpercentile([np.nan, 1.0, 3.0], 50).eval()
        array(2.)
    """
    return _quantile(floating(x), q, axis, method, keepdims, True, 100)


# -- moments of several variables ----------------------------------------------------------------------------


def average(
    x: TensorLike, axis: AxisLike = None, weights: TensorLike | None = None, keepdims: bool = False
) -> TensorVariable:
    """Mean, weighted by an array of x's shape or of its sizes along the axes, in their order.

    Raises:
        ShapeError: weights of other sizes.
        TypeError: weights of another number of dimensions.
        ZeroDivisionError: the weights add up to 0.

    Examples:
        >>> pt.average([1.0, 2.0, 6.0], weights=[1, 1, 2]).eval()
        array(3.75)
    """
    x = as_tensor_variable(x)
    if weights is None:
        return mean_(x, axis=axis, keepdims=keepdims)
    weights, ndim = as_tensor_variable(weights), x.type.ndim
    along = [*range(ndim)]
    if weights.type.ndim != ndim and axis is not None:
        along = [normalize_axis(a, ndim, "average") for a in (axis if isinstance(axis, Sequence) else [axis])]
    if weights.type.ndim != len(along):
        raise TypeError(
            f"average: weights must have {ndim} dimensions as x, or one for each axis that is named, got "
            f"{weights} of {weights.type} for {x} of {x.type} and axis {axis}"
        )
    weights = specify_shape(weights, [size_of(x, a) for a in along])
    weights = dimshuffle(weights, [along.index(a) if a in along else "x" for a in range(ndim)])
    weights = weights if x.type.kind in "fc" else cast_to(weights, "float64")
    total = sum_(weights, axis=axis, keepdims=keepdims)
    message = "average: the weights must not add up to 0"
    total = required(total, lambda total: ~(abs(total) <= 0), message, ZeroDivisionError)
    return sum_(x * weights, axis=axis, keepdims=keepdims) / total


publish(globals())
