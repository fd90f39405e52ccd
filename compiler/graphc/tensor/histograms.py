# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Histograms: numbers in each interval, or points in each cell of a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import cast, ge, le, minimum, switch
from graphc.ops.matrices import float_dtype
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import product_of, size_of
from graphc.ops.shaping import expand_dims, reshape
from graphc.tensor.accumulating import diff
from graphc.tensor.sets import _edges, bincount
from graphc.tensor.sorting import searchsorted
from graphc.tensor.splitting import unstack

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "histogram2d",
    "histogramdd",
]


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool = False,
    weights: TensorLike | None = None,
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
