# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that treat arrays as sets, and count: unique elements, bins, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.hooks import publish
from graphc.ops.advanced import Put
from graphc.ops.checks import Assert, as_count, required
from graphc.ops.counting import BinLength, Contained, CountBins, Histogram, SumBins, WeightedHistogram
from graphc.ops.create import arange, ones, zeros_like
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.elementwise import cast_to
from graphc.ops.join import concatenate, stack
from graphc.ops.math import cast, eq, ge, gt, isnan, le, maximum, minimum, ne, switch
from graphc.ops.matrices import float_dtype
from graphc.ops.reduce import all as all_
from graphc.ops.reduce import any as any_
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import min as min_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import as_size, product_of, size_of, sizes_of
from graphc.ops.shaping import expand_dims, moveaxis, ravel, reshape, size
from graphc.ops.table.arithmetic import promote
from graphc.scan.helpers import foldl
from graphc.tensor.accumulating import cumsum, diff
from graphc.tensor.masks import masked, true_positions
from graphc.tensor.ranges import linspace
from graphc.tensor.sorting import argsort, searchsorted, sort
from graphc.tensor.splitting import unstack

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorConstant, TensorVariable


def _begins(ordered: TensorVariable) -> TensorVariable:
    """Flags of the elements of a sorted vector that differ from the one before; one NaN counts for all."""
    later, earlier = ordered[1:], ordered[:-1]
    differ = ne(later, earlier)
    if ordered.type.kind in "fc":
        differ = differ & ~(isnan(later) & isnan(earlier))
    # The first element, if there is one.
    first = ones((minimum(size_of(ordered, 0), 1),), dtype="bool")
    return concatenate([first, differ])


def unique(
    ar: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: AxisLike = None,
) -> Any:
    """The different elements in ascending order.

    Args:
        ar: array-like.
        return_index: also return where each stands first in the flattened array.
        return_inverse: also return positions that make the array of the different elements, in its shape.
        return_counts: also return how often each occurs.
        axis: compare the slices along this axis instead of elements.

    Returns:
        The elements, or a list of them and what else is asked for (int64). NaN occurs once.

    Examples:
        >>> pt.unique([3, 1, 3]).eval()
        array([1, 3])
    """
    x = as_tensor_variable(ar)
    if axis is not None:
        return _unique_slices(x, normalize_axis(axis, x.type.ndim, "unique"), return_index, return_inverse,
                              return_counts)  # fmt: skip
    flat = ravel(x)
    if not (return_index or return_inverse):
        ordered = sort(flat)
        begins = _begins(ordered)
        values = masked(ordered, begins)
        return [values, _counts(begins)] if return_counts else values
    order = argsort(flat)
    begins = _begins(flat[order])
    first = masked(order, begins)
    results = [flat[first]]
    results += [first] if return_index else []
    if return_inverse:
        results.append(reshape(_inverse(order, begins), sizes_of(x)))
    return [*results, _counts(begins)] if return_counts else results


def _inverse(order: TensorVariable, begins: TensorVariable) -> TensorVariable:
    group = cumsum(begins) - 1
    return Put(0, True)(zeros_like(order), group, order)


def _counts(begins: TensorVariable) -> TensorVariable:
    starts = true_positions(begins)
    end = stack([size_of(begins, 0)])
    # Without elements there is no group, and no end of one.
    ends = concatenate([starts[1:], end[: minimum(size_of(begins, 0), 1)]])
    return ends - starts


def _reorder(column: TensorVariable, order: TensorVariable, rows: TensorVariable) -> TensorVariable:
    return order[argsort(rows[order, column])]


def _unique_slices(
    x: TensorVariable, axis: int, index: bool, inverse: bool, counts: bool
) -> list[TensorVariable] | TensorVariable:
    """Slices in lexicographic order: sorted by the last of their elements first, each time stably."""
    moved = moveaxis(x, axis, 0)
    sizes = sizes_of(moved)
    rows = reshape(moved, [sizes[0], -1])
    width = rows.type.shape[1]
    order = arange(sizes[0])
    if width is None:
        columns = arange(size_of(rows, 1))[::-1]
        order = foldl(_reorder, columns, order, rows, return_updates=False)
    for column in reversed(range(width or 0)):
        order = order[argsort(rows[order, column])]
    ordered = rows[order]
    differ = any_(ne(ordered[1:], ordered[:-1]), axis=1)
    begins = concatenate([ones((minimum(sizes[0], 1),), dtype="bool"), differ])
    first = masked(order, begins)
    results = [moveaxis(moved[first], 0, axis)]
    results += [first] if index else []
    results += [_inverse(order, begins)] if inverse else []
    results += [_counts(begins)] if counts else []
    return results if len(results) > 1 else results[0]


def isin(
    element: TensorLike, test_elements: TensorLike, assume_unique: bool = False, invert: bool = False
) -> TensorVariable:
    """Flags of the elements that occur among others.

    Args:
        element: array-like.
        test_elements: array-like of any shape.
        assume_unique: accepted for compatibility.
        invert: which do not.

    Examples:
        >>> pt.isin([1, 2, 3], [2]).eval()
        array([False,  True, False])
    """
    x, others = as_tensor_variable(element), ravel(as_tensor_variable(test_elements))
    dtype = promote(x.type.numpy_dtype, others.type.numpy_dtype).name
    mixed = {x.type.kind, others.type.kind} == {"i", "u"} and dtype == "float64"
    # Only what both dtypes have may be equal; float64 does not tell large numbers apart.
    common = ge(cast(x, "int64"), 0) if mixed else None
    dtype = "uint64" if mixed else dtype
    x, others = cast_to(x, dtype), cast_to(others, dtype)
    if others.type.shape[0] is not None and others.type.shape[0] <= 8:
        found: TensorVariable = zeros_like(x, dtype="bool")
        for i in range(others.type.shape[0]):
            found = found | eq(x, others[i])
    else:
        found = reshape(Contained()(ravel(x), sort(others)), sizes_of(x))
    found = found if common is None else found & common
    return ~found if invert else found


def in1d(
    ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False, invert: bool = False
) -> TensorVariable:
    """`isin` of the flattened array.

    Examples:
        >>> pt.in1d([1, 2, 3], [2, 3]).eval()
        array([False,  True,  True])
    """
    return isin(ravel(as_tensor_variable(ar1)), ar2, invert=invert)


def union1d(ar1: TensorLike, ar2: TensorLike) -> TensorVariable:
    """The different elements of two arrays, in ascending order.

    Examples:
        >>> pt.union1d([1, 2], [2, 3]).eval()
        array([1, 2, 3])
    """
    return unique(concatenate([ravel(as_tensor_variable(x)) for x in (ar1, ar2)]))


def intersect1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> TensorVariable:
    """The different elements that two arrays have in common, in ascending order.

    Examples:
        >>> pt.intersect1d([1, 2, 3], [2, 3, 4]).eval()
        array([2, 3])
    """
    first, second = (as_tensor_variable(x) for x in (ar1, ar2))
    dtype = promote(first.type.numpy_dtype, second.type.numpy_dtype).name
    values = unique(first)
    return cast_to(masked(values, isin(values, second)), dtype)


def setdiff1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> TensorVariable:
    """The different elements of one array that are not in another; in ascending order, or with
    ``assume_unique`` in theirs.

    Examples:
        >>> pt.setdiff1d([1, 2, 3], [2]).eval()
        array([1, 3])
    """
    x = as_tensor_variable(ar1)
    values = ravel(x) if assume_unique else unique(x)
    return masked(values, isin(values, ar2, invert=True))


def setxor1d(ar1: TensorLike, ar2: TensorLike, assume_unique: bool = False) -> TensorVariable:
    """The different elements that only one of two arrays has, in ascending order.

    Examples:
        >>> pt.setxor1d([1, 2], [2, 3]).eval()
        array([1, 3])
    """
    return sort(concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)]))


def bincount(
    x: TensorLike, weights: TensorLike | None = None, minlength: TensorLike = 0, assert_nonneg: bool = False
) -> TensorVariable:
    """Number of occurrences of each number from 0 to the largest; with weights, the sum of theirs (float64).

    Args:
        x: vector of integers, none negative.
        weights: vector of x's length.
        minlength: least length of the result; may be symbolic.
        assert_nonneg: whether a negative number is an AssertionError.

    Raises:
        ValueError: when run, a negative number.

    Examples:
        >>> pt.bincount([0, 1, 1, 3]).eval()
        array([1, 2, 0, 1])
    """
    numbers = cast_to(operand(x, "bincount takes a vector of integers", 1, 1, "biu", TypeError), "int64")
    if assert_nonneg:
        numbers = Assert("bincount: a number is negative")(numbers, all_(ge(numbers, 0)))
    length = maximum(BinLength()(numbers), as_count(minlength, "bincount"))
    if weights is None:
        return CountBins()(numbers, length)
    values = operand(weights, "bincount takes a vector of weights", 1, 1)
    return SumBins()(numbers, cast_to(values, "float64"), length)


def _edges(
    a: TensorVariable, bins: TensorLike, range_: Sequence[TensorLike] | None
) -> tuple[TensorVariable, bool]:
    """The edges of bins, and whether they have equal distances."""
    if not isinstance(bins, int | np.integer):
        given = as_tensor_variable(bins)
        if given.type.ndim == 1:
            return required(given, lambda edges: edges[1:] >= edges[:-1], "bins must ascend"), False
        if given.type.ndim or given.type.kind not in "iu":
            raise TypeError(f"bins must be an integer or a vector of edges, got {bins}")
    count = as_size(bins, "histogram")
    count = required(count, lambda n: n >= 1, "a histogram has at least one bin")
    if range_ is not None:
        low, high = (
            required(
                cast_to(as_tensor_variable(v), "float64"),
                np.isfinite,
                "the range of a histogram must be finite",
            )
            for v in range_
        )
        low = required(low, lambda v: v <= high, "the range of a histogram must ascend")
    else:
        values = cast_to(ravel(a), "float64")
        some = gt(size(values), 0)
        low = switch(some, min_(concatenate([values, values[:1], _none(values)])), 0.0)
        high = switch(some, max_(concatenate([values, values[:1], _none(values, -1)])), 1.0)
        low, high = (
            required(v, np.isfinite, "the elements of a histogram without a range must be finite")
            for v in (low, high)
        )
    same = eq(low, high)
    low, high = switch(same, low - 0.5, low), switch(same, high + 0.5, high)
    return linspace(low, high, count + 1), True


def _none(values: TensorVariable, sign: int = 1) -> TensorConstant:
    """A number that changes no extreme, so that an empty vector has one too."""
    return constant(np.array([sign * np.inf]))


def histogram_bin_edges(
    a: TensorLike, bins: TensorLike = 10, range: Sequence[TensorLike] | None = None
) -> TensorVariable:
    """The edges of the bins of `histogram`; arguments as there.

    Examples:
        >>> pt.histogram_bin_edges([1.0, 3.0], bins=2).eval()
        array([1., 2., 3.])
    """
    return _edges(as_tensor_variable(a), bins, range)[0]


def histogram(
    a: TensorLike,
    bins: TensorLike = 10,
    range: Sequence[TensorLike] | None = None,
    density: bool = False,
    weights: TensorLike | None = None,
) -> tuple[TensorVariable, TensorVariable]:
    """Number of elements in each bin; the last bin includes its right edge.

    Args:
        a: array-like.
        bins: number of bins of equal width, or a vector of ascending edges, none of them NaN.
        range: lowest and highest edge; by default the smallest and the largest element.
        density: divide by the number of elements and the width, so that the integral is 1.
        weights: array of a's shape whose elements are summed instead of counted.

    Raises:
        ValueError: edges that do not ascend, fewer than one bin, or a range that is not finite.

    Returns:
        The counts (int64; of weights their dtype; float64 for densities) and the edges.

    Examples:
        >>> [v.eval().tolist() for v in pt.histogram([1.0, 2.0, 2.5], bins=2, range=(1.0, 3.0))]
        [[1, 2], [1.0, 2.0, 3.0]]
    """
    x = as_tensor_variable(a)
    edges, uniform = _edges(x, bins, range)
    flat = ravel(x)
    dtype = promote(flat.type.numpy_dtype, edges.type.numpy_dtype).name
    flat, inner = cast_to(flat, dtype), cast_to(edges, dtype)
    uniform = uniform and np.dtype(dtype).kind == "f"
    if weights is None:
        counts = Histogram(uniform)(flat, inner[:-1], inner[-1])
    else:
        counts = WeightedHistogram(uniform)(flat, ravel(as_tensor_variable(weights)), inner[:-1], inner[-1])
    if density:
        counts = cast(counts, "float64")
        counts = counts / cast(diff(edges), "float64") / sum_(counts)
    return counts, edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: TensorLike | None = None
) -> tuple[TensorVariable, list[TensorVariable]]:
    """Number of points in each cell of a grid, as ``numpy.histogramdd``.

    Args:
        sample: array (N, D) of points with D known, or D vectors.
        bins: number of bins along each axis, or a number or a vector of edges for each of them.
        range: lowest and highest edge for each axis.
        density: divide by the number of points and the volumes, so that the integral is 1.
        weights: vector (N) of what is summed instead of counted.

    Returns:
        float64 counts with D axes, and D vectors of edges.

    Examples:
        >>> pt.histogramdd([[0.0, 0.0], [1.0, 1.0]], bins=2)[0].eval()
        array([[0., 0.],
               [0., 2.]])
    """
    if isinstance(sample, list | tuple):
        columns = [as_tensor_variable(v) for v in sample]
    else:
        columns = list(unstack(sample, axis=1))
    per_axis = [bins] * len(columns) if isinstance(bins, int | np.integer) else list(bins)
    limits = [None] * len(columns) if range is None else list(range)
    if len(per_axis) != len(columns) or len(limits) != len(columns):
        raise ValueError(f"there must be bins for each of {len(columns)} axes")
    edges, flat, inside = [], None, None
    for values, count, limit in zip(columns, per_axis, limits, strict=True):
        mine, _ = _edges(values, count, limit)
        dtype = float_dtype(values.type.dtype, mine.type.dtype)
        v, e = cast(values, dtype), cast(mine, dtype)
        number = size_of(e, 0) - 1
        place = minimum(searchsorted(e, v, side="right") - 1, number - 1)
        within = ge(v, e[0]) & le(v, e[-1])
        flat = place if flat is None else flat * number + place
        inside = within if inside is None else inside & within
        edges.append(mine)
    sizes = [size_of(e, 0) - 1 for e in edges]
    total = product_of(sizes)
    assert inside is not None and flat is not None  # there is a column
    counted = bincount(switch(inside, flat, total), weights, minlength=total + 1)[:total]
    result: TensorVariable = cast(reshape(counted, sizes), "float64")
    if density:
        for i, e in enumerate(edges):
            widths = cast(diff(e), "float64")
            result = result / expand_dims(widths, tuple(j for j, _ in enumerate(edges) if j != i))
        result = result / sum_(counted)
    return result, edges


def histogram2d(
    x: TensorLike,
    y: TensorLike,
    bins: TensorLike = 10,
    range: Any = None,
    density: bool = False,
    weights: TensorLike | None = None,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """`histogramdd` of points (x, y): the counts, the edges along x, the edges along y.

    A vector as ``bins`` is for both axes; a pair is for one axis each.

    Examples:
        >>> [v.eval().tolist() for v in pt.histogram2d([0.0, 1.0], [0.0, 1.0], bins=2)]
        [[[1.0, 0.0], [0.0, 1.0]], [0.0, 0.5, 1.0], [0.0, 0.5, 1.0]]
    """
    both = isinstance(bins, list | tuple) and len(bins) == 2
    per_axis = bins if both or isinstance(bins, int | np.integer) else [bins, bins]
    counts, (first, second) = histogramdd([x, y], per_axis, range, density, weights)
    return counts, first, second


publish(globals())
