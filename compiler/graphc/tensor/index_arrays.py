# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of ``graphc.tensor`` that make arrays of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.hooks import publish
from graphc.ops.checks import CheckAndRaise, required
from graphc.ops.create import arange, bounded
from graphc.ops.join import stack
from graphc.ops.math import bitwise_and, cast, clip, ge, le, lt
from graphc.ops.reduce import all as all_
from graphc.ops.reduce import prod
from graphc.ops.shape import known_size, product_of, size_of, sizes_of
from graphc.ops.shaping import as_sizes, expand_dims
from graphc.tensor.masks import flatnonzero, nonzero, unravel
from graphc.tensor.rearranging import diag_indices

if TYPE_CHECKING:
    from graphc.graph.tensor import SizeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def unravel_index(indices: TensorLike, shape: SizeLike, order: str = "C") -> list[TensorVariable]:
    """Positions in a flattened array as one index array for each axis.

    Raises:
        ValueError: when run, a position that the shape does not have, or a shape that is too large.

    Examples:
        >>> [v.eval().tolist() for v in pt.unravel_index([1, 5], (2, 3))]
        [[0, 1], [1, 2]]
    """
    sizes = _ordered(shape, order)
    rest = _integers(indices, "unravel_index")
    inside = all_(bitwise_and(ge(rest, 0), lt(rest, product_of(sizes))))
    message = "unravel_index: a position is out of bounds for the shape"
    rest = CheckAndRaise(ValueError, message)(rest, inside, *_countable(sizes))
    found = unravel(rest, sizes)
    return found if order == "C" else found[::-1]


def ravel_multi_index(
    multi_index: Sequence[TensorLike], dims: SizeLike, mode: str | Sequence[str] = "raise", order: str = "C"
) -> TensorVariable:
    """One index array for each axis as positions in the flattened array.

    Args:
        multi_index: index arrays that broadcast.
        dims: the shape.
        mode: what an index out of bounds means: ``"raise"`` (negative ones included), ``"wrap"`` or
            ``"clip"``; one for all axes, or one for each.
        order: ``"C"`` for row-major, ``"F"`` for column-major order.

    Raises:
        ValueError: when run, an index out of bounds with mode ``raise``, or a shape that is too large.

    Examples:
        >>> pt.ravel_multi_index(([0, 1], [1, 2]), (2, 3)).eval()
        array([1, 5])
    """
    arrays = [_integers(x, "ravel_multi_index") for x in multi_index]
    # Of an axis without positions there is none to clip to.
    sizes = [
        required(size, lambda n: n > 0, "ravel_multi_index: dims must be at least 1")
        for size in _ordered(dims, "C", len(arrays))
    ]
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
            conditions.append(all_(bitwise_and(ge(x, 0), lt(x, size))))
        x = x % size if how == "wrap" else clip(x, 0, size - 1) if how == "clip" else x
        total = x if total is None else total * size + x
    message = "ravel_multi_index: an index is out of bounds for the shape"
    return CheckAndRaise(ValueError, message)(total, *conditions) if conditions else total


def _countable(sizes: Sequence[TensorVariable]) -> list[TensorVariable]:
    """The condition that 64 bits count the elements of a shape; none where that is known."""
    known = [known_size(size) for size in sizes]
    if None not in known:
        if math.prod(size for size in known if size is not None) >= 1 << 63:
            raise ValueError(f"there is no array of shape {tuple(known)}: it is too large")
        return []
    return [lt(prod(stack([cast(size, "float64") for size in sizes])), 2.0**63)]


def _ordered(shape: SizeLike, order: str, ndim: int | None = None) -> list[TensorVariable]:
    if order not in ("C", "F"):
        raise ValueError(f"order must be 'C' or 'F', got {order!r}")
    sizes = as_sizes(shape, "shape", ndim)
    return sizes if order == "C" else sizes[::-1]


def _integers(x: TensorLike, what: str) -> TensorVariable:
    return cast(operand(x, f"{what} takes integers", kinds="iu", error=TypeError), "int64")


def tril_indices_from(a: TensorLike, k: int = 0) -> tuple[TensorVariable, TensorVariable]:
    """Row and column indices of the lower triangle of a matrix; `tril_indices` if the sizes are known.

    Examples:
        >>> [v.eval().tolist() for v in pt.tril_indices_from(np.ones((2, 2)))]
        [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle_of(a, k, le)


def triu_indices_from(a: TensorLike, k: int = 0) -> tuple[TensorVariable, TensorVariable]:
    """Row and column indices of the upper triangle of a matrix; `triu_indices` if the sizes are known.

    Examples:
        >>> [v.eval().tolist() for v in pt.triu_indices_from(np.ones((2, 2)))]
        [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle_of(a, k, ge)


def _triangle_of(
    a: TensorLike, k: int, compare: Callable[[TensorVariable, TensorVariable], TensorVariable]
) -> tuple[TensorVariable, TensorVariable]:
    a = operand(a, "the triangle of a matrix is meant", 2, 2)
    rows, columns = (arange(size) for size in sizes_of(a))
    first, second = nonzero(compare(expand_dims(columns - bounded(k), 0), expand_dims(rows, 1)))
    return first, second


def diag_indices_from(arr: TensorLike) -> tuple[TensorVariable, ...]:
    """Indices of the main diagonal of an array with equal sizes.

    Examples:
        >>> [v.eval().tolist() for v in pt.diag_indices_from(np.ones((2, 2)))]
        [[0, 1], [0, 1]]
    """
    arr = as_tensor_variable(arr)
    if arr.type.ndim < 2 or len({size for size in arr.type.shape if size is not None}) > 1:
        raise ValueError(f"the array must have at least two axes, of equal sizes; got {arr.type}")
    return diag_indices(size_of(arr, 0), arr.type.ndim)


def ix_(*args: TensorLike) -> tuple[TensorVariable, ...]:
    """Vectors as open grids: each along an axis of its own. Of masks, the positions of true elements.

    Examples:
        >>> [v.eval().tolist() for v in pt.ix_([0, 1], [2])]
        [[[0], [1]], [[2]]]
    """
    result = []
    for i, given in enumerate(args):
        v = operand(given, "ix_ takes vectors", 1, 1)
        v = flatnonzero(v) if v.type.kind == "b" else v
        result.append(expand_dims(v, tuple(j for j in range(len(args)) if j != i)))
    return tuple(result)


publish(globals())
