# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` whose results have as many elements as a mask has true ones, and choices
between arrays.

Their sizes are computed from elements. Where such a result is that of the compiled function, its mask is
computed twice: once for the size, once for the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from graphc.graph.basic import Constant, Variable
from graphc.graph.tensor.convert import as_tensor_variable, constant, operand
from graphc.ops.counting import Compress, CountTrue, FlatNonzero, Gather, RepeatLength, RepeatPositions
from graphc.ops.create import arange, zeros, zeros_like
from graphc.ops.elementwise import cast_to
from graphc.ops.join import stack
from graphc.ops.math import cast, clip, eq, floor_div, lt, mod, ne, second, switch
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import as_size, known_size, size_of, sizes_of
from graphc.ops.shaping import broadcast_to, expand_dims, moveaxis, on_axis, ravel, reshape, specify_shape
from graphc.ops.table.arithmetic import promote
from graphc.tensor.dims import atleast_Nd, broadcast_shape

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "argwhere", "choose", "compress", "count_nonzero", "extract", "flatnonzero", "nonzero", "nonzero_values",
    "repeat", "select", "where",
]  # fmt: skip


def _count(mask: TensorVariable) -> TensorVariable:
    """Number of true elements: of what is computed, a sum that is fused with it."""
    return sum_(mask, dtype="int64") if mask.owner is not None else CountTrue()(mask)


def true_positions(mask: TensorVariable) -> TensorVariable:
    """Positions of the true elements of a vector of booleans."""
    return FlatNonzero()(mask, _count(mask))


def masked(x: Any, mask: Any) -> TensorVariable:
    """Rows of x where a vector of booleans is true."""
    if x.type.ndim == 1:
        return Compress()(x, mask, _count(mask))
    return x[true_positions(mask)]


def _mask(x: TensorLike) -> TensorVariable:
    return cast_to(as_tensor_variable(x), "bool")


def flatnonzero(a: TensorLike) -> TensorVariable:
    """Positions (int64) of the nonzero elements of the flattened array.

    Examples:
        >>> pt.flatnonzero([0, 3, 4]).eval()
        array([1, 2])
    """
    return true_positions(ravel(_mask(a)))


@overload
def nonzero(a: TensorLike, return_matrix: Literal[False] = False) -> tuple[TensorVariable, ...]: ...
@overload
def nonzero(a: TensorLike, return_matrix: Literal[True]) -> TensorVariable: ...
def nonzero(a: TensorLike, return_matrix: bool = False) -> TensorVariable | tuple[TensorVariable, ...]:
    """Positions (int64) of the nonzero elements, as a tuple with a vector for each axis, in row-major order.

    Args:
        a: array-like with at least one dimension.
        return_matrix: return one matrix with a row for each axis.

    Examples:
        >>> [v.eval().tolist() for v in pt.nonzero([0, 3, 4])]
        [[1, 2]]
    """
    mask = _mask(a)
    if mask.type.ndim == 0:
        raise ValueError("nonzero needs at least one dimension, got a scalar; use atleast_1d")
    positions = tuple(unravel(true_positions(ravel(mask)), sizes_of(mask)))
    return stack(positions, axis=0) if return_matrix else positions


def unravel(flat: TensorLike, sizes: Sequence[TensorLike]) -> list[TensorVariable]:
    """Indices of each axis from positions in row-major order."""
    indices, rest = [], as_tensor_variable(flat)
    for size in reversed(sizes[1:]):
        indices.append(mod(rest, size))
        rest = floor_div(rest, size)
    return [rest, *reversed(indices)]


def argwhere(a: TensorLike) -> TensorVariable:
    """Positions (int64) of the nonzero elements: a matrix with a row for each.

    Examples:
        >>> pt.argwhere([0, 3, 0, 4]).eval()
        array([[1],
               [3]])
    """
    mask = _mask(a)
    if mask.type.ndim == 0:
        count = cast(mask, "int64")
        return zeros((count, 0), dtype="int64")
    return stack(nonzero(mask), axis=1)


def by_mode(index: Any, size: Any, mode: str) -> TensorVariable:
    """Positions as ``mode`` says of those beyond the ends: "wrap" and "clip" move them, "raise" does not.

    Raises:
        ValueError: another mode.
    """
    if mode == "wrap":
        return mod(index, size)
    if mode == "clip":
        return clip(index, 0, size - 1)
    if mode != "raise":
        raise ValueError(f"mode must be raise, wrap or clip, got {mode!r}")
    return index


def nonzero_values(a: TensorLike) -> TensorVariable:
    """The nonzero elements, flattened.

    Examples:
        >>> pt.nonzero_values([0, 3, 4]).eval()
        array([3, 4])
    """
    x = ravel(as_tensor_variable(a))
    return masked(x, ne(x, 0))


def count_nonzero(a: TensorLike, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Number (int64) of nonzero elements over axes.

    Examples:
        >>> pt.count_nonzero([0, 3, 4]).eval()
        array(2)
    """
    return sum_(_mask(a), axis=axis, dtype="int64", keepdims=keepdims)


def extract(condition: TensorLike, arr: TensorLike) -> TensorVariable:
    """The elements where a condition of as many elements holds, flattened.

    Examples:
        >>> pt.extract([True, False, True], [1, 2, 3]).eval()
        array([1, 3])
    """
    return masked(ravel(as_tensor_variable(arr)), ravel(_mask(condition)))


def compress(condition: TensorLike, a: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """The slices along an axis where a vector of conditions holds; it may be shorter than the axis.

    Args:
        condition: vector.
        a: array-like.
        axis: the axis; None for the flattened array.

    Examples:
        >>> pt.compress([True, False, True], [1, 2, 3]).eval()
        array([1, 3])
    """
    mask = operand(_mask(condition), "compress takes a vector of conditions", 1, 1)
    x, axis = on_axis(a, axis, "compress")
    return x.take(true_positions(mask), axis=axis)


def repeat(a: TensorLike, repeats: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """Every element (slice along an axis) repeated.

    Args:
        a: array-like.
        repeats: how often: a number, or a vector with one for each element, or with one for all; may be
            symbolic.
        axis: the axis; None for the flattened array.

    Raises:
        ValueError: fewer than 0 repetitions, or a wrong number of them; when run, if they are not known here.

    Examples:
        >>> pt.repeat([1, 2], 2).eval()
        array([1, 1, 2, 2])
    """
    x = as_tensor_variable(a)
    counts = operand(repeats, "repeat takes a number or a vector of repetitions", 0, 1)
    if not np.can_cast(counts.type.numpy_dtype, np.int64):
        raise TypeError(
            f"repeat takes repetitions of a dtype that int64 holds, got {counts} of type {counts.type}"
        )
    if isinstance(counts, Constant) and (counts.data < 0).any():
        raise ValueError(f"repetitions must be at least 0, got {counts.data}")
    x, axis = on_axis(x, axis, "repeat")
    counts = cast_to(counts, "int64")
    if counts.type.shape == (1,):
        counts = constant(counts.data[0]) if isinstance(counts, Constant) else counts[0]
    if counts.type.ndim == 0:
        return _repeat_equally(x, counts, axis)
    counts = _one_for_each(counts, size_of(x, axis))
    length = RepeatLength()(counts)
    if isinstance(counts, Constant):
        length = constant(counts.data.sum())
    return x.take(RepeatPositions()(counts, length), axis=axis)


def _one_for_each(counts: TensorVariable, size: TensorVariable) -> TensorVariable:
    """Numbers of repetitions, as many as elements; a vector of one number is read as often as needed."""
    have, want = counts.type.shape[0], known_size(size)
    if have is not None and have == want:
        return counts
    if have is not None:
        return specify_shape(counts, [size])
    single = eq(size_of(counts, 0), 1)
    counts = specify_shape(counts, [switch(single, 1, size)])
    return counts.take(switch(single, 0, arange(size)))


def _repeat_equally(x: TensorVariable, count: TensorVariable, axis: int) -> TensorVariable:
    sizes = sizes_of(x)
    count = as_size(count, "repeat")
    apart = expand_dims(x, axis + 1)
    wide = broadcast_to(apart, [*sizes[: axis + 1], count, *sizes[axis + 1 :]])
    return reshape(wide, [*sizes[:axis], sizes[axis] * count, *sizes[axis + 1 :]])


def choose(a: TensorLike, choices: Any, out: None = None, mode: str = "raise") -> TensorVariable:
    """Elements of the choice that each index says.

    Args:
        a: integers; broadcasts with the choices.
        choices: sequence of arrays, or one array whose first axis has them.
        mode: ``raise``, ``wrap`` or ``clip``: what an index out of bounds means.

    Raises:
        IndexError: when run, an index out of bounds with mode ``raise``.
        TypeError: ``a`` has no integers.

    Examples:
        >>> pt.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]]).eval()
        array([ 1, 20,  3])
    """
    given = operand(a, "choose takes integers to choose by", kinds="biu", error=TypeError)
    index = cast_to(given, "int64")
    if isinstance(choices, Variable | np.ndarray):
        stacked = as_tensor_variable(choices)
        if stacked.type.shape[0] is None:
            return _choose_row(index, stacked, mode)
        choices = [stacked[i] for i in range(stacked.type.shape[0])]
    options = [as_tensor_variable(c) for c in choices]
    index = by_mode(index, len(options), mode)
    if mode == "raise":
        # Reading at the index checks it.
        index = constant(np.arange(len(options)))[switch(lt(index, 0), len(options), index)]
    result = options[-1]
    for i in reversed(range(len(options) - 1)):
        result = switch(eq(index, i), options[i], result)
    return result if len(options) > 1 else second(index + zeros_like(result), result)


def _choose_row(index: TensorVariable, stacked: TensorVariable, mode: str) -> TensorVariable:
    """`choose` among a number of rows that is not known yet: one element of each column."""
    count = size_of(stacked, 0)
    index = by_mode(index, count, mode)
    if mode == "raise":
        index = switch(lt(index, 0), count, index)
    rank = max(index.type.ndim, stacked.type.ndim - 1)
    index = atleast_Nd(index, n=rank)
    sizes = sizes_of(stacked)
    options = reshape(stacked, [count, *[1] * (rank + 1 - stacked.type.ndim), *sizes[1:]])
    shape = broadcast_shape(sizes_of(index), sizes_of(options)[1:], arrays_are_shapes=True)
    options, index = broadcast_to(options, [count, *shape]), broadcast_to(index, shape)
    return Gather()(moveaxis(options, 0, -1), expand_dims(index, -1))[..., 0]


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> TensorVariable:
    """For each element the choice of the first condition that holds, else ``default``.

    Examples:
        >>> pt.select([np.array([True, False])], [np.array([1, 2])], 0).eval()
        array([1, 0])
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select takes as many conditions as choices, and at least one; got {len(condlist)} and "
            f"{len(choicelist)}"
        )
    options = [as_tensor_variable(c) for c in choicelist]
    dtype = promote(*(c.type.numpy_dtype for c in options)).name if len(options) > 1 else options[0].dtype
    result = default
    for condition, option in zip(reversed(condlist), reversed(options), strict=True):
        test = operand(condition, "select takes boolean conditions", kinds="b", error=TypeError)
        result = switch(test, cast_to(option, dtype), result)
    return result


@overload
def where(condition: TensorLike) -> tuple[TensorVariable, ...]: ...
@overload
def where(condition: TensorLike, x: TensorLike, y: TensorLike) -> TensorVariable: ...
def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None
) -> TensorVariable | tuple[TensorVariable, ...]:
    """``x`` where the condition holds, ``y`` elsewhere; the same as ``switch``. Without both, the
    positions of nonzero elements, as `nonzero` returns them.

    Examples:
        >>> pt.where([True, False], [1, 2], [10, 20]).eval()
        array([ 1, 20])
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where takes a condition and two values, or a condition alone")
    return switch(condition, x, y)
