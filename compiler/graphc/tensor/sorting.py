# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that sort, search in sorted arrays, and move elements to positions along an
axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.errors import ArgumentError
from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.ops.checks import required
from graphc.ops.counting import ArgPartition, ArgSort, Gather, Partition, Scatter, SearchSorted, Sort, TopK
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.elementwise import cast_to
from graphc.ops.ifelse import ifelse
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, eq, gt, lt, switch
from graphc.ops.reduce import any as any_
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import (
    atleast_1d,
    broadcast_to,
    moveaxis,
    on_axis,
    ravel,
    reshape,
    shape_padleft,
    specify_shape,
)

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "argpartition", "argsort", "argtopk", "digitize", "lexsort", "partition",
    "put_along_axis", "searchsorted", "sort", "sort_complex", "take_along_axis",
    "topk", "topk_and_argtopk",
]  # fmt: skip


def along_last(function: Callable[..., TensorVariable], axis: int, *arrays: TensorVariable) -> TensorVariable:
    """A function of arrays' last axes, used along another axis of all."""
    rank = arrays[0].type.ndim
    if axis == rank - 1:
        return function(*arrays)
    return moveaxis(function(*(moveaxis(x, axis, -1) for x in arrays)), -1, axis)


def along_axis(
    function: Callable[..., TensorVariable], x: TensorLike, axis: AxisLike | Variable, what: str
) -> TensorVariable:
    """A function of the last axis along an axis that may be known only when the graph is run."""
    if not isinstance(axis, Variable) or known_size(axis) is not None:
        array, known = _with_axis(x, known_size(axis) if isinstance(axis, Variable) else axis, what)
        return along_last(function, known, array)
    x = as_tensor_variable(x)
    if axis.type.ndim or axis.type.kind not in "iu" or x.type.ndim == 0:
        raise ArgumentError(f"the axis of {what} must be a 0-d integer, got {axis} of type {axis.type}")
    rank = x.type.ndim
    # Reading at the axis checks it.
    place = constant(np.arange(rank))[axis]
    results = [along_last(function, each, x) for each in range(rank)]
    chosen = results[-1]
    for each in reversed(range(rank - 1)):
        chosen = ifelse(eq(place, each), results[each], chosen)
    return chosen


def _with_axis(x: TensorLike, axis: AxisLike, what: str) -> tuple[TensorVariable, int]:
    x = as_tensor_variable(x)
    if axis is not None and x.type.ndim == 0:
        raise ValueError(f"{what} needs an axis, got the scalar {x}")
    return on_axis(x, axis, what)


def _check_kind(kind: str | None, stable: bool | None = None) -> None:
    if kind is not None and stable is not None:
        raise ValueError(f"give either kind or stable, not both, got {kind!r} and {stable}")
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable"):
        raise ValueError(f"kind must be quicksort, heapsort, mergesort or stable, got {kind!r}")


def _check_order(order: object) -> None:
    if order is not None:
        raise ValueError(f"tensors have no fields to order by, got order={order!r}")


def sort(
    a: TensorLike,
    axis: AxisLike = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
) -> TensorVariable:
    """Elements along an axis in ascending order; NaN last, complex numbers by their real parts first.

    Args:
        a: array-like.
        axis: the axis, symbolic or not; None sorts the flattened array.
        kind: accepted for compatibility.
        order: must be None, as there are no fields.
        stable: accepted for compatibility: equal elements cannot be told apart.

    Examples:
        >>> pt.sort([3, 1, 2]).eval()
        array([1, 2, 3])
    """
    _check_kind(kind, stable)
    _check_order(order)
    return along_axis(Sort(), a, axis, "sort")


def sort_complex(a: TensorLike) -> TensorVariable:
    """`sort` along the last axis, as complex numbers.

    Examples:
        >>> pt.sort_complex([2 + 1j, 1 + 2j]).eval()
        array([1.+2.j, 2.+1.j])
    """
    x = as_tensor_variable(a)
    small = x.type.dtype in ("float32", "float16", "int8", "int16", "uint8", "uint16", "complex64")
    return sort(cast(x, "complex64" if small else "complex128"))


def argsort(
    a: TensorLike,
    axis: AxisLike = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
) -> TensorVariable:
    """Positions (int64) that sort an axis; arguments as `sort`. Equal elements stay in their order, whatever
    ``kind`` is.

    Examples:
        >>> pt.argsort([3, 1, 2]).eval()
        array([1, 2, 0])
    """
    _check_kind(kind, stable)
    _check_order(order)
    return along_axis(ArgSort(), a, axis, "argsort")


def _ranks(kth: TensorLike, what: str) -> TensorVariable:
    ranks = operand(kth, f"{what} takes an integer or a vector of integers as kth", 0, 1, "iu", TypeError)
    return atleast_1d(cast_to(ranks, "int64"))


def partition(a: TensorLike, kth: TensorLike, axis: AxisLike = -1) -> TensorVariable:
    """The elements along an axis with those of the ranks ``kth`` where sorting would put them, smaller ones
    before each and larger ones after, in no particular order.

    Args:
        a: array-like.
        kth: rank, or a vector of ranks; may be symbolic.
        axis: the axis; None for the flattened array.

    Raises:
        ValueError: when run, a rank out of bounds.

    Examples:
        >>> pt.partition([3, 1, 2], 0)[0].eval()
        array(1)
    """
    x, axis = _with_axis(a, axis, "partition")
    ranks = _ranks(kth, "partition")
    return along_last(lambda x: Partition()(x, ranks), axis, x)


def argpartition(a: TensorLike, kth: TensorLike, axis: AxisLike = -1) -> TensorVariable:
    """Positions (int64) that part an axis as `partition` does, not always in its order between the ranks.

    Examples:
        >>> int(pt.argpartition([3, 1, 2], 0).eval()[0])
        1
    """
    x, axis = _with_axis(a, axis, "argpartition")
    ranks = _ranks(kth, "argpartition")
    return along_last(lambda x: ArgPartition()(x, ranks), axis, x)


def searchsorted(
    a: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None
) -> TensorVariable:
    """Insertion positions in a sorted vector (int64).

    Args:
        a: ascending vector.
        v: values of any shape.
        side: ``left`` puts them before equal elements, ``right`` after.
        sorter: positions that sort ``a``, if it is not sorted.

    Examples:
        >>> pt.searchsorted([1, 2, 3], [2, 5]).eval()
        array([1, 3])
    """
    x, values = operand(a, "searchsorted searches in a vector", 1, 1), as_tensor_variable(v)
    if side not in ("left", "right"):
        raise ValueError(f"side must be left or right, got {side!r}")
    if sorter is not None:
        order = operand(sorter, "the sorter of searchsorted is a vector", 1, 1)
        x = x[specify_shape(order, [size_of(x, 0)])]
    if {x.type.kind, values.type.kind} == {"i", "u"} and "uint64" in (x.type.dtype, values.type.dtype):
        # Their common dtype, float64, does not tell large numbers apart.
        unsigned = x.type.kind == "u"
        found = searchsorted(x, cast(values, "uint64" if unsigned else "int64"), side)
        outside = lt(values, 0) if unsigned else gt(values, np.iinfo(np.int64).max)
        return switch(outside, 0 if unsigned else size_of(x, 0), found)
    found = SearchSorted(side == "right")(x, ravel(values))
    return found if values.type.ndim == 1 else reshape(found, sizes_of(values))


def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> TensorVariable:
    """Number of the bin of each element: ``bins[i - 1] <= x < bins[i]``, or with ``right``
    ``bins[i - 1] < x <= bins[i]``; of descending bins it is ``bins[i - 1] > x >= bins[i]``, or with ``right``
    ``bins[i - 1] >= x > bins[i]``.

    Raises:
        ValueError: bins that neither ascend nor descend, here or when run. NaN is in any order.

    Examples:
        >>> pt.digitize([0.5, 1.5, 2.5], [1.0, 2.0]).eval()
        array([0, 1, 2])
    """
    edges = operand(bins, "digitize takes a vector of bins", 1, 1)
    side = "left" if right else "right"
    # Negated, so that NaN, which sorts last, is in order.
    edges = required(
        edges,
        lambda v: ~(v[1:] < v[:-1]).any() | ~(v[1:] > v[:-1]).any(),
        "digitize takes bins that ascend or descend",
    )
    if isinstance(edges, Constant):
        descends = bool((np.diff(edges.data) < 0).any())
        found = searchsorted(edges[::-1] if descends else edges, x, side=side)
        return size_of(edges, 0) - found if descends else found
    falling = any_(edges[1:] < edges[:-1])
    found = searchsorted(switch(falling, edges[::-1], edges), x, side=side)
    return switch(falling, size_of(edges, 0) - found, found)


def take_along_axis(arr: TensorLike, indices: TensorLike, axis: AxisLike = -1) -> TensorVariable:
    """Elements at positions along an axis that are given for each: what `argsort` returns selects what `sort`
    does.

    Args:
        arr: array-like.
        indices: integers of arr's rank; sizes of the other axes broadcast.
        axis: the axis; None for the flattened array.

    Raises:
        IndexError: when run, a position out of bounds.

    Examples:
        >>> pt.take_along_axis([[1, 2], [3, 4]], [[0], [1]], axis=1).eval()
        array([[1],
               [4]])
    """
    x, positions = as_tensor_variable(arr), as_tensor_variable(indices)
    if axis is None:
        x, positions, axis = ravel(x), ravel(positions), 0
    _check_positions(x, positions, "take_along_axis")
    return along_last(Gather(), normalize_axis(axis, x.type.ndim, "take_along_axis"), x, positions)


def _check_positions(x: TensorVariable, positions: TensorVariable, what: str) -> None:
    operand(positions, f"{what} takes integer positions", kinds="iu", error=IndexError)
    if x.type.ndim != positions.type.ndim:
        raise ValueError(f"{what} takes positions of rank {x.type.ndim}, got rank {positions.type.ndim}")


def put_along_axis(
    arr: TensorLike, indices: TensorLike, values: TensorLike, axis: AxisLike = -1, mode: str = "set"
) -> TensorVariable:
    """A copy of an array with values at positions along an axis that are given for each.

    Args:
        arr: array-like.
        indices: integers of arr's rank.
        values: array-like that broadcasts to the positions.
        axis: the axis; None for the flattened array.
        mode: ``set`` (of repeated positions the last counts), ``add``, ``mul``, ``max`` or ``min``.

    Examples:
        >>> pt.put_along_axis([[1, 2], [3, 4]], [[0], [1]], 9, axis=1).eval()
        array([[9, 2],
               [3, 9]])
    """
    x, positions = as_tensor_variable(arr), as_tensor_variable(indices)
    values = as_tensor_variable(values)
    sizes = sizes_of(x)
    if axis is None:
        flat = put_along_axis(ravel(x), ravel(positions), values, 0, mode)
        return reshape(flat, sizes)
    _check_positions(x, positions, "put_along_axis")
    axis = normalize_axis(axis, x.type.ndim, "put_along_axis")
    if values.type.ndim < positions.type.ndim:
        values = shape_padleft(values, positions.type.ndim - values.type.ndim)
    shape = [
        size_of(positions, a) if a == axis or x.type.shape[a] == 1 else sizes[a] for a in range(x.type.ndim)
    ]
    positions, values = (
        v if v.type.shape == x.type.shape and None not in v.type.shape else broadcast_to(v, shape)
        for v in (positions, values)
    )
    return along_last(Scatter(mode), axis, x, cast_to(values, x.type.dtype), positions)


def _top(x: TensorLike, kth: TensorLike, axis: AxisLike, what: str) -> list[TensorVariable]:
    """The largest (or with negative kth, smallest) elements along the last axis, and their positions."""
    x, axis = _with_axis(x, axis, what)
    count = operand(kth, f"{what} takes an integer", 0, 0, "iu", TypeError)
    smallest = isinstance(count, Constant) and bool(count.data < 0)
    message = f"{what} takes a kth other than 0, and a positive one where it is not known here"
    count = required(abs_(count) if smallest else count, lambda n: n > 0, message)
    return TopK(smallest)(moveaxis(x, axis, -1), count)


def topk(
    x: TensorLike, kth: TensorLike, axis: AxisLike = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> TensorVariable:
    """The ``kth`` largest elements along an axis, the largest (NaN before all) first; with negative ``kth``
    the smallest, the smallest first. Of equal elements the first come first. A symbolic ``kth`` must be
    positive.

    Args:
        x: array-like.
        kth: how many; not 0.
        axis: the axis; None for the flattened array.
        sorted: accepted for compatibility; they always are.
        idx_dtype: accepted for compatibility.

    Examples:
        >>> pt.topk([3, 9, 5], 2).eval()
        array([9, 5])
    """
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[0]


def argtopk(
    x: TensorLike, kth: TensorLike, axis: AxisLike = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> TensorVariable:
    """Positions of what `topk` returns.

    Examples:
        >>> pt.argtopk([3, 9, 5], 1).eval()
        array([1])
    """
    return topk_and_argtopk(x, kth, axis, sorted, idx_dtype)[1]


def topk_and_argtopk(
    x: TensorLike, kth: TensorLike, axis: AxisLike = -1, sorted: bool = True, idx_dtype: str = "int64"
) -> list[TensorVariable]:
    """`topk` and `argtopk`.

    Examples:
        >>> [v.eval().tolist() for v in pt.topk_and_argtopk([3, 9, 5], 1)]
        [[9], [1]]
    """
    place = 0 if axis is None else normalize_axis(axis, as_tensor_variable(x).type.ndim, "topk")
    values, positions = _top(x, kth, axis, "topk")
    positions = cast(positions, np.dtype(idx_dtype).name)
    return [moveaxis(values, -1, place), moveaxis(positions, -1, place)]


def lexsort(keys: TensorLike, axis: int = -1) -> TensorVariable:
    """Positions that sort by several keys, of which the last one counts most.

    Args:
        keys: arrays of one shape, or one array with them along its first axis of known size.
        axis: the axis of a key.

    Examples:
        >>> names, years = [2, 1, 1], [0, 0, 1]
        >>> pt.lexsort([years, names]).eval()  # by name, then by year
        array([1, 2, 0])
    """
    parts = [
        as_tensor_variable(key) for key in (keys if isinstance(keys, Sequence) else as_tensor_variable(keys))
    ]
    shape = sizes_of(parts[0])
    parts = [parts[0], *(specify_shape(key, shape) for key in parts[1:])]
    order = argsort(parts[0], axis=axis)
    for key in parts[1:]:
        following = argsort(take_along_axis(key, order, axis=axis), axis=axis)
        order = take_along_axis(order, following, axis=axis)
    return order
