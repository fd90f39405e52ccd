# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that put elements elsewhere: roll, reverse, repeat, permute, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.checks import CheckAndRaise
from graphc.ops.create import arange, bounded
from graphc.ops.create import zeros as zeros_
from graphc.ops.dimshuffle import normalize_axes, normalize_axis
from graphc.ops.join import concatenate
from graphc.ops.math import cast, eq, ge, le, lt, maximum, minimum, switch
from graphc.ops.shape import known_size, size_of, sizes_of
from graphc.ops.shaping import (
    broadcast_to,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    shape_padleft,
    specify_shape,
    swapaxes,
)
from graphc.tensor.dims import atleast_Nd, broadcast_shape, slice_at_axis
from graphc.tensor.indexing import set_subtensor, take
from graphc.tensor.masks import nonzero
from graphc.tensor.sorting import argsort, take_along_axis

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def inverse_permutation(perm: TensorLike) -> TensorVariable:
    """The inverses of permutations of the first integers, along the last axis, in their dtype.

    Negative numbers count from the end, as indices do; what then is no permutation raises an IndexError.

    Examples:
        >>> pt.inverse_permutation([2, 0, 1]).eval()
        array([1, 2, 0])
    """
    x = as_tensor_variable(perm)
    size = size_of(x, x.type.ndim - 1)
    places = switch(lt(x, 0), x + size, x)
    order = argsort(places, axis=-1)
    message = "inverse_permutation: of the integers from 0 below the size, each must be there once"
    permutes = eq(take_along_axis(places, order, axis=-1), arange(size))
    return cast(CheckAndRaise(IndexError, message)(order, permutes), x.type.dtype)


def permute_row_elements(x: TensorLike, y: TensorLike, inverse: bool = False) -> TensorVariable:
    """The last axis of x in the order of integers y, or in the inverse of it; leading axes broadcast.

    Examples:
        >>> pt.permute_row_elements([[1, 2, 3], [4, 5, 6]], [2, 0, 1]).eval()
        array([[3, 1, 2],
               [6, 4, 5]])
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if inverse:
        y = inverse_permutation(y)
    if y.type.ndim == 1:
        return take(x, y, axis=-1)
    rank = max(x.type.ndim, y.type.ndim)
    x, y = atleast_Nd(x, n=rank), atleast_Nd(y, n=rank)
    shape = broadcast_shape([*sizes_of(x)[:-1]], [*sizes_of(y)[:-1]], arrays_are_shapes=True)
    x, y = (broadcast_to(v, [*shape, size_of(v, rank - 1)]) for v in (x, y))
    return take_along_axis(x, y, axis=-1)


def flip(m: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """The elements in reverse order along some axes, all of them by default.

    Examples:
        >>> pt.flip([1, 2, 3]).eval()
        array([3, 2, 1])
    """
    x = as_tensor_variable(m)
    axes = normalize_axes(axis, x.type.ndim, "flip")
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.type.ndim))]


def flipud(m: TensorLike) -> TensorVariable:
    """`flip` along the first axis.

    Examples:
        >>> pt.flipud([[1, 2], [3, 4]]).eval()
        array([[3, 4],
               [1, 2]])
    """
    return flip(operand(m, "flipud needs at least 1 dimension", 1), 0)


def fliplr(m: TensorLike) -> TensorVariable:
    """`flip` along the second axis.

    Examples:
        >>> pt.fliplr([[1, 2], [3, 4]]).eval()
        array([[2, 1],
               [4, 3]])
    """
    return flip(operand(m, "fliplr needs at least 2 dimensions", 2), 1)


def rot90(m: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> TensorVariable:
    """Rotated by 90 degrees, ``k`` times, from the first of two axes towards the second.

    Args:
        m: array-like of at least two dimensions.
        k: number of turns, known when the graph is built.
        axes: the plane of rotation.

    Examples:
        >>> pt.rot90([[1, 2], [3, 4]]).eval()
        array([[2, 4],
               [1, 3]])
    """
    x = operand(m, "rot90 needs at least 2 dimensions", 2)
    if len(axes) != 2:
        raise ValueError(f"rot90 takes two axes, got {axes!r}")
    a, b = (normalize_axis(axis, x.type.ndim, "rot90") for axis in axes)
    if a == b:
        raise ValueError(f"rot90 takes two different axes, got {axes!r}")
    turns = index(k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (a, b))
    return swapaxes(flip(x, b), a, b) if turns == 1 else flip(swapaxes(x, a, b), b)


def roll(a: TensorLike, shift: TensorLike, axis: AxisLike = None) -> TensorVariable:
    """Elements shifted along axes; those that leave at the end come back at the beginning.

    Args:
        a: array-like.
        shift: integer, symbolic or not, or one for each axis; several for one axis add up.
        axis: axis or axes; None rolls the flattened array and keeps the shape.

    Examples:
        >>> pt.roll([1, 2, 3], 1).eval()
        array([3, 1, 2])
    """
    x = as_tensor_variable(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), sizes_of(x))
    axes = axis if isinstance(axis, list | tuple) else [axis]
    shifts = shift if isinstance(shift, list | tuple) else [shift] * len(axes)
    shifts, axes = (each * max(len(shifts), len(axes)) if len(each) == 1 else each for each in (shifts, axes))
    if len(shifts) != len(axes):
        raise ValueError(f"roll takes one shift for each axis, got {len(shifts)} shifts and {len(axes)} axes")
    for s, each in zip(shifts, axes, strict=True):
        x = _roll(x, s, normalize_axis(each, x.type.ndim, "roll"))
    return x


def _roll(x: TensorVariable, shift: TensorVariable | int, axis: int) -> TensorVariable:
    size = size_of(x, axis)
    s = operand(shift, "roll shifts by 0-d integers", 0, 0, "iu", TypeError)
    cut = size - cast(s, "int64") % maximum(size, 1)
    known = known_size(cut)
    at = cut if known is None else known
    rolled = concatenate([x[slice_at_axis(part, axis)] for part in (slice(at, None), slice(at))], axis=axis)
    return specify_shape(rolled, x.type.shape) if rolled.type.shape != x.type.shape else rolled


def tile(A: TensorLike, reps: TensorLike) -> TensorVariable:
    """Copies side by side: ``reps[i]`` of them along axis i.

    Args:
        A: array-like.
        reps: integer or a sequence of them, symbolic or not; shorter ones are for the last axes.

    Examples:
        >>> pt.tile([1, 2], 2).eval()
        array([1, 2, 1, 2])
    """
    x = as_tensor_variable(A)
    counts: list[Any] = list(reps) if isinstance(reps, list | tuple) else [reps]
    if isinstance(reps, Variable) and reps.type.ndim:
        length = reps.type.shape[0]
        if length is None:
            raise ValueError(
                f"tile needs to know how many repetitions there are, got {reps} of type {reps.type}"
            )
        counts = [reps[i] for i in range(length)]
    elif isinstance(reps, np.ndarray):
        counts = np.atleast_1d(reps).tolist()
    if any(isinstance(count, int) and count < 0 for count in counts):
        raise ValueError(f"tile: numbers of copies must be at least 0, got {reps!r}")
    rank = max(len(counts), x.type.ndim)
    counts = [1] * (rank - len(counts)) + counts
    if x.type.ndim < rank:
        x = shape_padleft(x, rank - x.type.ndim)
    sizes = sizes_of(x)
    apart = reshape(x, [n for size in sizes for n in (1, size)])
    wide = broadcast_to(apart, [n for count, size in zip(counts, sizes, strict=True) for n in (count, size)])
    return reshape(wide, [as_tensor_variable(c) * n for c, n in zip(counts, sizes, strict=True)])


# -- diagonals -----------------------------------------------------------------------------------------------


def _flat_diagonal(rows: TensorVariable, columns: TensorVariable, offset: int) -> slice:
    """The positions of a diagonal in a matrix in row-major order."""
    start = offset if offset >= 0 else columns * -offset
    length = maximum(minimum(rows + min(offset, 0), columns - max(offset, 0)), 0)
    # An empty diagonal may begin after the end.
    start = minimum(start, rows * columns)
    return slice(start, start + length * (columns + 1) - minimum(length, 1) * columns, columns + 1)


def _with_matrix_last(a: TensorLike, axis1: int, axis2: int, what: str) -> TensorVariable:
    x = operand(a, f"{what} needs at least 2 dimensions", 2)
    first, second = (normalize_axis(axis, x.type.ndim, what) for axis in (axis1, axis2))
    if first == second:
        raise ValueError(f"{what} takes two different axes, got {axis1} and {axis2}")
    return moveaxis(x, (first, second), (-2, -1))


def diagonal(a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Elements ``a[i, i + offset]`` of two axes, along a new last axis.

    Examples:
        >>> pt.diagonal([[1, 2], [3, 4]]).eval()
        array([1, 4])
    """
    x = _with_matrix_last(a, axis1, axis2, "diagonal")
    *batch, rows, columns = sizes_of(x)
    flat = reshape(x, [*batch, rows * columns])
    return flat[(..., _flat_diagonal(rows, columns, index(offset)))]


def trace(
    a: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
) -> TensorVariable:
    """Sum of a diagonal.

    Examples:
        >>> pt.trace([[1, 2], [3, 4]]).eval()
        array(5)
    """
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype)


def diag(v: TensorLike, k: int = 0) -> TensorVariable:
    """A vector as a diagonal of a matrix of zeros, or a diagonal of a matrix as a vector.

    Examples:
        >>> pt.diag([[1, 2], [3, 4]]).eval()
        array([1, 4])
    """
    x = operand(v, "diag takes a vector or a matrix", 1, 2)
    return diagonal(x, k) if x.type.ndim == 2 else alloc_diag(x, k)


def fill_diagonal(a: TensorLike, val: TensorLike, wrap: bool = False) -> TensorVariable:
    """The array with ``val``, a number or a vector of the diagonal's length, on its main diagonal.

    Args:
        a: array-like (m, n), or of more axes that have all the same size.
        val: array-like, 0-d or 1-d.
        wrap: in tall matrices, leave one row out at the end of the diagonal and begin again.

    Examples:
        >>> pt.fill_diagonal(np.zeros((2, 2)), 5.0).eval()
        array([[5., 0.],
               [0., 5.]])
    """
    x = operand(a, "fill_diagonal needs at least 2 dimensions", 2)
    value = cast(as_tensor_variable(val), x.type.dtype)
    if x.type.ndim > 2:
        size = size_of(x, 0)
        flat = ravel(specify_shape(x, [size] * x.type.ndim))
        step = sum((size**i for i in range(1, x.type.ndim)), as_tensor_variable(1))
        return reshape(set_subtensor(flat[::step], value), sizes_of(x))
    rows, columns = sizes_of(x)
    flat = reshape(x, [rows * columns])
    places = slice(None, None, columns + 1) if wrap else _flat_diagonal(rows, columns, 0)
    return reshape(set_subtensor(flat[places], value), [rows, columns])


def diag_indices(n: TensorLike, ndim: int = 2) -> tuple[TensorVariable, ...]:
    """Indices of the main diagonal of an array with ``ndim`` axes of size ``n``.

    Examples:
        >>> [v.eval().tolist() for v in pt.diag_indices(2)]
        [[0, 1], [0, 1]]
    """
    return (arange(n),) * ndim


def tril_indices(
    n: TensorLike, k: TensorLike = 0, m: TensorLike | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Row and column indices of the lower triangle of an (n, m) array; sizes and k may be symbolic.

    Examples:
        >>> [v.eval().tolist() for v in pt.tril_indices(2)]
        [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle("tril_indices", n, k, m)


def triu_indices(
    n: TensorLike, k: TensorLike = 0, m: TensorLike | None = None
) -> tuple[TensorVariable, TensorVariable]:
    """Row and column indices of the upper triangle of an (n, m) array; sizes and k may be symbolic.

    Examples:
        >>> [v.eval().tolist() for v in pt.triu_indices(2)]
        [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle("triu_indices", n, k, m)


def _triangle(name: str, n: Any, k: Any, m: Any) -> tuple[TensorVariable, TensorVariable]:
    import numpy as np

    numbers = [
        value if isinstance(value, int | np.integer) or value is None else known_size(value)
        for value in (n, m)
    ]
    if isinstance(k, Variable) or numbers[0] is None or (m is not None and numbers[1] is None):
        rows, columns = arange(n), arange(n if m is None else m)
        edge = expand_dims(rows, 1) + bounded(k)
        inside = le(columns, edge) if name == "tril_indices" else ge(columns, edge)
        found_rows, found_columns = nonzero(inside)
        return found_rows, found_columns
    rows, columns = getattr(np, name)(numbers[0], int(k), numbers[1])
    return as_tensor_variable(rows), as_tensor_variable(columns)


def diagflat(v: TensorLike, k: int = 0) -> TensorVariable:
    """The elements as a diagonal of a matrix of zeros.

    Examples:
        >>> pt.diagflat([[1], [2]]).eval()
        array([[1, 0],
               [0, 2]])
    """
    return diag(ravel(as_tensor_variable(v)), k)


def extract_diag(x: TensorLike) -> TensorVariable:
    """The main diagonal of a matrix.

    Examples:
        >>> pt.extract_diag([[1, 2], [3, 4]]).eval()
        array([1, 4])
    """
    return diagonal(x)


def alloc_diag(diag: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> TensorVariable:
    """Zeros with the last axis of ``diag`` on a diagonal of two new axes: `diagonal` takes it back.

    Examples:
        >>> pt.alloc_diag([1, 2]).eval()
        array([[1, 0],
               [0, 2]])
    """
    v = as_tensor_variable(diag)
    rank = v.type.ndim + 1
    first, second = sorted(normalize_axes((axis1, axis2), rank, "alloc_diag"))
    *batch, size = sizes_of(v)
    n = size + abs(index(offset))
    flat = zeros_((*batch, n * n), dtype=v.type.dtype)
    placed = set_subtensor(flat[(..., _flat_diagonal(n, n, index(offset)))], v)
    return moveaxis(reshape(placed, [*batch, n, n]), (-2, -1), (first, second))


def fill_diagonal_offset(a: TensorLike, val: TensorLike, offset: int) -> TensorVariable:
    """The matrix with a number on a diagonal; positive offsets are above the main one.

    Examples:
        >>> pt.fill_diagonal_offset(np.zeros((2, 2)), 5.0, 1).eval()
        array([[0., 5.],
               [0., 0.]])
    """
    a = operand(a, "fill_diagonal_offset takes a matrix", 2, 2)
    rows, columns = (arange(size) for size in sizes_of(a))
    on = eq(expand_dims(rows + bounded(offset), 1), expand_dims(columns, 0))
    return switch(on, cast(as_tensor_variable(val), a.type.dtype), a)


publish(globals())
