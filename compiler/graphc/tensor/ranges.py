# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that make sequences and grids of numbers, windows for filters and spectra.

Windows are NumPy's: symmetric vectors of float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from graphc.config import config
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import parse_dtype
from graphc.hooks import publish
from graphc.ops.checks import as_count, required
from graphc.ops.create import arange
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.join import stack
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, cos, eq, floor, i0, log10, maximum, sqr, sqrt, switch
from graphc.ops.math import sign as sign_
from graphc.ops.shape import as_size, sizes_of
from graphc.ops.shaping import as_sizes, broadcast_to, dimshuffle, moveaxis, ravel, reshape, shape_padleft
from graphc.ops.table.arithmetic import promote

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def _positions(M: TensorLike, what: str) -> TensorVariable:
    """M numbers from -1 to 1; 0 for M = 1."""
    size = as_size(M, what)
    steps = cast(maximum(size - 1, 1), "float64")
    return cast(arange(1 - size, size, 2), "float64") / steps


def bartlett(M: TensorLike) -> TensorVariable:
    """A triangle over M points that is 0 at both ends.

    Examples:
        >>> pt.bartlett(5).eval()
        array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return 1 - abs_(_positions(M, "bartlett"))


def hanning(M: TensorLike) -> TensorVariable:
    """A raised cosine over M points that is 0 at both ends.

    Examples:
        >>> pt.hanning(3).eval()
        array([0., 1., 0.])
    """
    return 0.5 + 0.5 * cos(np.pi * _positions(M, "hanning"))


def hamming(M: TensorLike) -> TensorVariable:
    """A raised cosine over M points with 0.08 at both ends.

    Examples:
        >>> pt.hamming(3).eval()
        array([0.08, 1.  , 0.08])
    """
    return 0.54 + 0.46 * cos(np.pi * _positions(M, "hamming"))


def blackman(M: TensorLike) -> TensorVariable:
    """Two cosines over M points.

    Examples:
        >>> pt.blackman(3).round(6).eval()
        array([-0.,  1., -0.])
    """
    x = _positions(M, "blackman")
    return 0.42 + 0.5 * cos(np.pi * x) + 0.08 * cos(2 * np.pi * x)


def kaiser(M: TensorLike, beta: TensorLike) -> TensorVariable:
    """Kaiser's window of shape ``beta`` over M points, by Bessel functions.

    Examples:
        >>> pt.kaiser(3, 0.0).eval()
        array([1., 1., 1.])
    """
    x = _positions(M, "kaiser")
    beta = cast(as_tensor_variable(beta), "float64")
    return i0(beta * sqrt(1 - sqr(x))) / i0(beta)


@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable: ...
@overload
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> tuple[TensorVariable, TensorVariable]: ...
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable | tuple[TensorVariable, TensorVariable]:
    """``num`` numbers from ``start`` to ``stop`` with equal distances.

    Args:
        start, stop: array-likes that broadcast.
        num: how many, symbolic or not.
        endpoint: whether ``stop`` is the last number.
        retstep: also return the distance.
        dtype: dtype of the result, by default a float; for integers, numbers are rounded down.
        axis: where the new axis is.

    Examples:
        >>> pt.linspace(0, 1, 3).eval()
        array([0. , 0.5, 1. ])
    """
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    kind = promote(first.type.numpy_dtype, last.type.numpy_dtype).name
    if np.dtype(kind).kind not in "fc":
        kind = promote(np.dtype(kind), np.dtype(config.floatX)).name
    first, last = cast(first, kind), cast(last, kind)
    count = as_count(num, "linspace", "num, how many numbers to make,")
    gaps = count - 1 if endpoint else count
    divisor = cast(maximum(gaps, 1), kind)
    difference = last - first
    step = difference / divisor
    position = cast(arange(count), kind)
    position = reshape(position, [count, *[1] * step.type.ndim])
    numbers = position * step + first
    if endpoint:
        # Rounding must not move the last number.
        numbers = switch(eq(position, cast(gaps, kind)) & (gaps > 0), last, numbers)
    if dtype is not None:
        name = parse_dtype(dtype)
        numbers = cast(floor(numbers) if np.dtype(name).kind in "iu" else numbers, name)
    if axis:
        numbers = moveaxis(numbers, 0, normalize_axis(axis, numbers.type.ndim, "linspace"))
    return (numbers, step) if retstep else numbers


def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike = 50,
    endpoint: bool = True,
    base: TensorLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable:
    """Powers of ``base`` with exponents as `linspace` makes them.

    Examples:
        >>> pt.logspace(0, 2, 3).eval()
        array([  1.,  10., 100.])
    """
    base = as_tensor_variable(base)
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    # The new axis is before all those of the operands, also of the base's.
    first = (
        shape_padleft(first, base.type.ndim - first.type.ndim) if base.type.ndim > first.type.ndim else first
    )
    powers = base ** linspace(
        first, last, as_count(num, "logspace", "num, how many numbers to make,"), endpoint=endpoint
    )
    return _finished(powers, dtype, axis, "logspace")


def _finished(numbers: TensorVariable, dtype: DTypeLike | None, axis: int, name: str) -> TensorVariable:
    """Numbers along the first axis in another dtype and along another axis."""
    if dtype is not None:
        numbers = cast(numbers, parse_dtype(dtype))
    return moveaxis(numbers, 0, normalize_axis(axis, numbers.type.ndim, name)) if axis else numbers


def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: TensorLike = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> TensorVariable:
    """``num`` numbers from ``start`` to ``stop`` with equal ratios; both of one sign, and not zero. Complex
    numbers lie on a spiral.

    Examples:
        >>> pt.geomspace(1, 100, 3).eval()
        array([  1.,  10., 100.])
    """
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    wide = promote(first.type.numpy_dtype, last.type.numpy_dtype, np.dtype(config.floatX)).name
    first, last = (
        required(cast(x, wide), lambda x: ~(abs(x) <= 0), "geomspace takes ends that are not 0")
        for x in (first, last)
    )
    count = as_count(num, "geomspace", "num, how many numbers to make,")
    sign = sign_(first)
    logs = linspace(log10(first / sign), log10(last / sign), count, endpoint=endpoint)
    numbers = sign * 10.0**logs
    # Rounding must not move the ends.
    position = reshape(arange(count), [count, *[1] * (numbers.type.ndim - 1)])
    if endpoint:
        numbers = switch(eq(position, count - 1), last, numbers)
    numbers = switch(eq(position, 0), first, numbers)
    return _finished(numbers, dtype, axis, "geomspace")


def meshgrid(
    *xi: TensorLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[TensorVariable]:
    """Coordinates of the points of a grid: one array for each vector, with an axis for each of them.

    Args:
        xi: vectors.
        copy: accepted for compatibility.
        sparse: leave the other axes at size 1.
        indexing: ``"xy"`` exchanges the first two axes, ``"ij"`` does not.

    Examples:
        >>> [v.eval().tolist() for v in pt.meshgrid([1, 2], [3, 4])]
        [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    xs = [ravel(as_tensor_variable(x)) for x in xi]
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = [1, 0]
    sizes: list[TensorVariable | None] = [None] * len(xs)
    for x, place in zip(xs, places, strict=True):
        sizes[place] = sizes_of(x)[0]
    open_grid = [
        dimshuffle(x, ["x"] * p + [0] + ["x"] * (len(xs) - p - 1)) for x, p in zip(xs, places, strict=True)
    ]
    return open_grid if sparse else [broadcast_to(x, sizes) for x in open_grid]


class _Grid:
    """`mgrid` and `ogrid`: indexed with slices ``start:stop:step``; an imaginary step counts points."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> TensorVariable | list[TensorVariable]:
        slices = key if isinstance(key, tuple) else (key,)
        axes = [self._axis(s) for s in slices]
        if not isinstance(key, tuple):
            return axes[0]
        dtype = promote(*(x.type.numpy_dtype for x in axes)).name
        grid = meshgrid(*(cast(x, dtype) for x in axes), sparse=self._sparse, indexing="ij")
        return grid if self._sparse else stack(grid)

    def _axis(self, s: slice) -> Any:
        if not isinstance(s, slice):
            raise TypeError(f"grids are made from slices such as 0:5 or 0:1:11j, got {s!r}")
        start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
        if isinstance(step, complex):
            return linspace(start, s.stop, int(abs(step)))
        return arange(start, s.stop, step)


mgrid, ogrid = _Grid(False), _Grid(True)


def indices(dimensions: Sequence[TensorLike], dtype: DTypeLike = "int64", sparse: bool = False) -> Any:
    """The indices of an array of a shape: one array for each axis, stacked unless ``sparse``.

    Examples:
        >>> [v.eval().tolist() for v in pt.indices((2, 2))]
        [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    sizes = [as_count(n, "indices") for n in as_sizes(dimensions, "indices")]
    grid = meshgrid(*(cast(arange(n), parse_dtype(dtype)) for n in sizes), sparse=sparse, indexing="ij")
    return tuple(grid) if sparse else stack(grid)


publish(globals())
