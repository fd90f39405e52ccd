# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that make sequences and grids of numbers, and join arrays in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.config import config
from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import parse_dtype
from graphc.ops.axes import normalize_axis
from graphc.ops.rows_arithmetic import promote
from graphc.ops.sizes import as_size, as_sizes, known_size, product_of, sizes_of
from graphc.public import pt
from graphc.raise_op import CheckAndRaise

__all__ = [
    "block",
    "column_stack",
    "dstack",
    "geomspace",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "mgrid",
    "ogrid",
    "ravel_multi_index",
    "unravel_index",
]


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """``num`` numbers from ``start`` to ``stop`` with equal distances.

    Args:
        start, stop: array-likes that broadcast.
        num: how many, symbolic or not.
        endpoint: whether ``stop`` is the last number.
        retstep: also return the distance.
        dtype: dtype of the result, by default a float; for integers, numbers are rounded down.
        axis: where the new axis is.
    """
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    kind = promote(first.type.numpy_dtype, last.type.numpy_dtype).name
    if np.dtype(kind).kind not in "fc":
        kind = promote(np.dtype(kind), np.dtype(config.floatX)).name
    first, last = pt.cast(first, kind), pt.cast(last, kind)
    count = as_size(num, "linspace")
    if known_size(count) is not None and known_size(count) < 0:  # type: ignore[operator]
        raise ValueError(f"linspace makes at least 0 numbers, got {known_size(count)}")
    gaps = count - 1 if endpoint else count
    divisor = pt.cast(pt.maximum(gaps, 1), kind)
    difference = last - first
    step = difference / divisor
    position = pt.cast(pt.arange(count), kind)
    position = pt.reshape(position, [count, *[1] * step.type.ndim])
    numbers = position * step + first
    if endpoint:
        # Rounding must not move the last number.
        numbers = pt.where(pt.eq(position, pt.cast(gaps, kind)) & (gaps > 0), last, numbers)
    if dtype is not None:
        name = parse_dtype(dtype)
        numbers = pt.cast(pt.floor(numbers) if np.dtype(name).kind in "iu" else numbers, name)
    if axis:
        numbers = pt.moveaxis(numbers, 0, normalize_axis(axis, numbers.type.ndim, "linspace"))
    return (numbers, step) if retstep else numbers


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Variable:
    """Powers of ``base`` with exponents as `linspace` makes them."""
    base = as_tensor_variable(base)
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    # The new axis is in front of all those of the operands, also of the base's.
    first = (
        pt.shape_padleft(first, base.type.ndim - first.type.ndim)
        if base.type.ndim > first.type.ndim
        else first
    )
    powers = base ** linspace(first, last, num, endpoint=endpoint)
    return _finished(powers, dtype, axis, "logspace")


def _finished(numbers: Any, dtype: Any, axis: int, name: str) -> Any:
    """Numbers along the first axis in another dtype and along another axis."""
    if dtype is not None:
        numbers = pt.cast(numbers, parse_dtype(dtype))
    return pt.moveaxis(numbers, 0, normalize_axis(axis, numbers.type.ndim, name)) if axis else numbers


def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Variable:
    """``num`` numbers from ``start`` to ``stop`` with equal ratios; both of one sign, and not zero. Complex
    numbers lie on a spiral.
    """
    first, last = as_tensor_variable(start), as_tensor_variable(stop)
    wide = promote(first.type.numpy_dtype, last.type.numpy_dtype, np.dtype(config.floatX)).name
    first, last = pt.cast(first, wide), pt.cast(last, wide)
    sign = pt.sign(first)
    logs = linspace(pt.log10(first / sign), pt.log10(last / sign), num, endpoint=endpoint)
    numbers = sign * 10.0**logs
    # Rounding must not move the ends.
    count = as_size(num, "geomspace")
    position = pt.reshape(pt.arange(count), [count, *[1] * (numbers.type.ndim - 1)])
    if endpoint:
        numbers = pt.where(pt.eq(position, count - 1), last, numbers)
    numbers = pt.where(pt.eq(position, 0), first, numbers)
    return _finished(numbers, dtype, axis, "geomspace")


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Variable]:
    """Coordinates of the points of a grid: one array for each vector, with an axis for each of them.

    Args:
        xi: vectors.
        copy: accepted for compatibility.
        sparse: leave the other axes at size 1.
        indexing: ``"xy"`` exchanges the first two axes, ``"ij"`` does not.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    xs = [pt.ravel(as_tensor_variable(x)) for x in xi]
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[:2] = [1, 0]
    sizes = [None] * len(xs)
    for x, place in zip(xs, places, strict=True):
        sizes[place] = sizes_of(x)[0]
    open_grid = [
        pt.dimshuffle(x, ["x"] * p + [0] + ["x"] * (len(xs) - p - 1)) for x, p in zip(xs, places, strict=True)
    ]
    return open_grid if sparse else [pt.broadcast_to(x, sizes) for x in open_grid]


class _Grid:
    """`mgrid` and `ogrid`: indexed with slices ``start:stop:step``; an imaginary step counts points."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        slices = key if isinstance(key, tuple) else (key,)
        axes = [self._axis(s) for s in slices]
        if not isinstance(key, tuple):
            return axes[0]
        dtype = promote(*(x.type.numpy_dtype for x in axes)).name
        grid = meshgrid(*(pt.cast(x, dtype) for x in axes), sparse=self._sparse, indexing="ij")
        return grid if self._sparse else pt.stack(grid)

    def _axis(self, s: Any) -> Any:
        if not isinstance(s, slice):
            raise TypeError(f"grids are made from slices such as 0:5 or 0:1:11j, got {s!r}")
        start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
        if isinstance(step, complex):
            return linspace(start, s.stop, int(abs(step)))
        return pt.arange(start, s.stop, step)


mgrid, ogrid = _Grid(False), _Grid(True)


def indices(dimensions: Any, dtype: Any = "int64", sparse: bool = False) -> Any:
    """The indices of an array of a shape: one array for each axis, stacked unless ``sparse``."""
    sizes = as_sizes(dimensions, "indices")
    grid = meshgrid(*(pt.cast(pt.arange(n), parse_dtype(dtype)) for n in sizes), sparse=sparse, indexing="ij")
    return tuple(grid) if sparse else pt.stack(grid)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> list[Variable]:
    """Positions in a flattened array as one index array for each axis.

    Raises:
        ValueError: when run, a position that the shape does not have, or a shape that is too large.
    """
    sizes = _ordered(shape, order)
    rest = pt.cast(_integers(indices, "unravel_index"), "int64")
    inside = pt.all(pt.bitwise_and(pt.ge(rest, 0), pt.lt(rest, product_of(sizes))))
    message = "unravel_index: a position is out of bounds for the shape"
    rest = CheckAndRaise(ValueError, message)(rest, inside, *_countable(sizes))
    found: list[Any] = []
    for size in reversed(sizes[1:]):
        found.insert(0, rest % size)
        rest = pt.floor_div(rest, size)
    found.insert(0, rest)
    return found if order == "C" else found[::-1]


def ravel_multi_index(
    multi_index: Sequence[Any], dims: Any, mode: str | Sequence[str] = "raise", order: str = "C"
) -> Variable:
    """One index array for each axis as positions in the flattened array.

    Args:
        multi_index: index arrays that broadcast.
        dims: the shape.
        mode: what an index out of bounds means: ``"raise"`` (negative ones included), ``"wrap"`` or
            ``"clip"``; one for all axes, or one for each.
        order: ``"C"`` for row-major, ``"F"`` for column-major order.

    Raises:
        ValueError: when run, an index out of bounds with mode ``raise``, or a shape that is too large.
    """
    arrays = [pt.cast(_integers(x, "ravel_multi_index"), "int64") for x in multi_index]
    sizes = _ordered(dims, "C", len(arrays))
    if len(arrays) != len(sizes):
        raise ValueError(
            f"ravel_multi_index takes one index array for each of {len(sizes)} axes, got {len(arrays)}"
        )
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    if len(modes) != len(sizes) or not {*modes} <= {"raise", "wrap", "clip"}:
        raise ValueError(
            f"mode must be 'raise', 'wrap' or 'clip', or one of them for each axis, got {mode!r}"
        )
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {order!r}")
    conditions = _countable(sizes)
    axes = list(zip(arrays, sizes, modes, strict=True))
    total: Any = None
    for x, size, how in axes if order == "C" else axes[::-1]:
        if how == "raise":
            conditions.append(pt.all(pt.bitwise_and(pt.ge(x, 0), pt.lt(x, size))))
        x = x % size if how == "wrap" else pt.clip(x, 0, size - 1) if how == "clip" else x
        total = x if total is None else total * size + x
    message = "ravel_multi_index: an index is out of bounds for the shape"
    return CheckAndRaise(ValueError, message)(total, *conditions) if conditions else total


def _countable(sizes: Sequence[Any]) -> list[Any]:
    """The condition that 64 bits count the elements of a shape; none where that is known."""
    known = [known_size(size) for size in sizes]
    if None not in known:
        if math.prod(size for size in known if size is not None) >= 1 << 63:
            raise ValueError(f"there is no array of shape {tuple(known)}: it is too large")
        return []
    return [pt.lt(pt.prod(pt.stack([pt.cast(size, "float64") for size in sizes])), 2.0**63)]


def _ordered(shape: Any, order: str, ndim: int | None = None) -> list[Any]:
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {order!r}")
    sizes = as_sizes(shape, "shape", ndim)
    return sizes if order == "C" else sizes[::-1]


def _integers(x: Any, what: str) -> Any:
    variable = as_tensor_variable(x)
    if variable.type.numpy_dtype.kind not in "iu":
        raise TypeError(f"{what} takes integers, got {variable} of type {variable.type}")
    return variable


def dstack(tup: Sequence[Any]) -> Variable:
    """Arrays one behind the other along the third axis."""
    xs = [pt.atleast_2d(x) for x in tup]
    return pt.concatenate([x[:, :, None] if x.type.ndim == 2 else x for x in xs], axis=2)


def column_stack(tup: Sequence[Any]) -> Variable:
    """Vectors, and matrices, as columns of one matrix."""
    xs = [as_tensor_variable(x) for x in tup]
    return pt.concatenate([x if x.type.ndim > 1 else pt.reshape(x, [-1, 1]) for x in xs], axis=1)


def block(arrays: Any) -> Variable:
    """An array from nested lists of blocks: the innermost lists are joined along the last axis, and so on."""
    depth, rank = _depth(arrays), _rank(arrays)
    return _block(arrays, depth, max(depth, rank), 0)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(x) for x in arrays}
    if not arrays or len(depths) != 1:
        raise ValueError("block takes lists that are nested equally deep, and none that is empty")
    return 1 + depths.pop()


def _rank(arrays: Any) -> int:
    return max(map(_rank, arrays)) if isinstance(arrays, list) else as_tensor_variable(arrays).type.ndim


def _block(arrays: Any, depth: int, rank: int, level: int) -> Any:
    if not isinstance(arrays, list):
        x = as_tensor_variable(arrays)
        return pt.shape_padleft(x, rank - x.type.ndim) if x.type.ndim < rank else x
    return pt.concatenate([_block(x, depth, rank, level + 1) for x in arrays], axis=rank - depth + level)
