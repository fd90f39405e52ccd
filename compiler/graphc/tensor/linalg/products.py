# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.ops.create import zeros
from graphc.ops.join import concatenate, stack
from graphc.ops.matrices import conj
from graphc.ops.shape import size_of, sizes_of
from graphc.ops.shaping import (
    broadcast_to,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    shape_padleft,
    specify_shape,
    squeeze,
)
from graphc.tensor.dims import atleast_Nd, broadcast_shape
from graphc.tensor.linalg.checks import matrix
from graphc.tensor.products import dot, matmul

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = [
    "block_diag", "cross", "kron", "matrix_dot", "matvec", "multi_dot", "vdot", "vecdot", "vecmat",
]  # fmt: skip


def matrix_dot(*args: TensorLike) -> TensorVariable:
    """Product of several matrices, from left to right.

    Examples:
        >>> pt.linalg.matrix_dot([[1, 2]], [[1], [1]]).eval()
        array([[3]])
    """
    if not args:
        raise ValueError("matrix_dot takes at least one matrix")
    first = as_tensor_variable(args[0])
    return reduce(dot, args[1:], first)


def multi_dot(arrays: Sequence[TensorLike]) -> TensorVariable:
    """Product of several matrices in the order that costs least.

    Args:
        arrays: at least two; the first and the last may be vectors. Unknown sizes count as 100.

    Examples:
        >>> pt.linalg.multi_dot([np.eye(2), np.ones((2, 1))]).eval()
        array([[1.],
               [1.]])
    """
    tensors = [as_tensor_variable(x) for x in arrays]
    if len(tensors) < 2:
        raise ValueError(f"multi_dot takes at least two arrays, got {len(tensors)}")
    row, column = tensors[0].type.ndim == 1, tensors[-1].type.ndim == 1
    if row:
        tensors[0] = expand_dims(tensors[0], 0)
    if column:
        tensors[-1] = expand_dims(tensors[-1], 1)
    result: TensorVariable = _chain([operand(x, "multi_dot takes matrices", 2, 2) for x in tensors])
    if column:
        result = squeeze(result, 1)
    return squeeze(result, 0) if row else result


def _chain(tensors: list[TensorVariable]) -> TensorVariable:
    """Dynamic programming over the places to split."""
    sizes = [size or 100 for size in (tensors[0].type.shape[0], *(x.type.shape[1] for x in tensors))]
    best: dict[tuple[int, int], tuple[int, TensorVariable]] = {(i, i): (0, x) for i, x in enumerate(tensors)}
    for length in range(1, len(tensors)):
        for i in range(len(tensors) - length):
            j = i + length
            costs = [
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            cost, k = min(costs)
            best[i, j] = cost, matmul(best[i, k][1], best[k + 1, j][1])
    return best[0, len(tensors) - 1][1]


def matvec(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Products of matrices (..., m, n) and vectors (..., n); leading axes broadcast.

    Examples:
        >>> pt.linalg.matvec([[1, 2], [3, 4]], [1, 1]).eval()
        array([3, 7])
    """
    return squeeze(matmul(x1, expand_dims(x2, -1), dtype), -1)


def vecmat(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """Products of vectors (..., m), conjugated, and matrices (..., m, n); leading axes broadcast.

    Examples:
        >>> pt.linalg.vecmat([1, 1], [[1, 2], [3, 4]]).eval()
        array([4, 6])
    """
    return squeeze(matmul(expand_dims(conj(as_tensor_variable(x1)), -2), x2, dtype), -2)


def vecdot(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None, axis: int = -1) -> TensorVariable:
    """Sums of products along an axis; the first operand is conjugated, leading axes broadcast.

    Examples:
        >>> pt.linalg.vecdot([[1, 2], [3, 4]], [1, 1]).eval()
        array([3, 7])
    """
    a, b = (moveaxis(x, axis, -1) for x in (x1, x2))
    product = matmul(expand_dims(conj(a), -2), expand_dims(b, -1), dtype)
    return squeeze(product, (-2, -1))


def vdot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """Sum of the products of all elements, those of a conjugated.

    Examples:
        >>> pt.linalg.vdot([1, 2], [3, 4]).eval()
        array(11)
    """
    return dot(ravel(conj(as_tensor_variable(a))), ravel(b))


def kron(a: TensorLike, b: TensorLike) -> TensorVariable:
    """Kronecker product.

    Args:
        a: array-like; leading 1s are added where it has fewer dimensions than b.
        b: the same. Matrices of batches: the first sizes are multiplied too, as in NumPy.

    Examples:
        >>> pt.linalg.kron([1, 2], [1, 10]).eval()
        array([ 1, 10,  2, 20])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    rank = max(a.type.ndim, b.type.ndim)
    a, b = (shape_padleft(x, rank - x.type.ndim) if x.type.ndim < rank else x for x in (a, b))
    wide = expand_dims(a, [2 * i + 1 for i in range(rank)])
    tall = expand_dims(b, [2 * i for i in range(rank)])
    return reshape(wide * tall, tuple(m * n for m, n in zip(sizes_of(a), sizes_of(b), strict=True)))


def matrix_kron(a: TensorLike, b: TensorLike) -> TensorVariable:
    """`kron` of the last two axes, for equal batches."""
    *batch, m, n = sizes_of(a)
    p, q = sizes_of(b)[-2:]
    wide = expand_dims(a, (-3, -1)) * expand_dims(b, (-4, -2))
    return reshape(wide, (*batch, m * p, n * q))


def block_diag(*matrices: TensorLike) -> TensorVariable:
    """Matrices (..., m_i, n_i) along the diagonal of one, zeros elsewhere; leading sizes broadcast.

    Examples:
        >>> pt.linalg.block_diag([[1, 2]], [[3]]).eval()
        array([[1, 2, 0],
               [0, 0, 3]])
    """
    blocks = [matrix(x, "block_diag") for x in matrices]
    if not blocks:
        raise ValueError("block_diag takes at least one matrix")
    rank = max(x.type.ndim for x in blocks)
    if rank > 2:
        blocks = [atleast_Nd(x, n=rank) for x in blocks]
        outer = broadcast_shape(*(sizes_of(x)[:-2] for x in blocks), arrays_are_shapes=True)
        blocks = [broadcast_to(x, (*outer, *sizes_of(x)[-2:])) for x in blocks]
    columns = [size_of(x, x.type.ndim - 1) for x in blocks]
    rows = []
    for i, x in enumerate(blocks):
        outside = sizes_of(x)[:-1]
        left, right = (_zeros(x, outside, sizes) for sizes in (columns[:i], columns[i + 1 :]))
        rows.append(concatenate([*left, x, *right], axis=-1))
    return concatenate(rows, axis=-2)


def _zeros(
    x: TensorVariable, outside: list[TensorVariable], columns: list[TensorVariable]
) -> list[TensorVariable]:
    """Zeros beside a block, nothing where there are no columns."""
    return [zeros((*outside, reduce(add, columns)), dtype=x.type.dtype)] if columns else []


def cross(a: Any, b: Any, axis: int = -1) -> TensorVariable:
    """Cross products of vectors of 3 elements along an axis; leading axes broadcast.

    Raises:
        ValueError: vectors of another size, here or when run.

    Examples:
        >>> pt.linalg.cross([1, 0, 0], [0, 1, 0]).eval()
        array([0, 0, 1])
    """
    a, b = (moveaxis(as_tensor_variable(x), axis, -1) for x in (a, b))
    for x in (a, b):
        if x.type.ndim == 0 or x.type.shape[-1] not in (None, 3):
            raise ValueError(f"cross takes vectors of 3 elements along axis {axis}, got {x} of type {x.type}")
    a, b = (specify_shape(v, [*[None] * (v.type.ndim - 1), 3]) for v in (a, b))
    x, y = ([v[..., i] for i in range(3)] for v in (a, b))
    parts = [x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3] for i in range(3)]
    return moveaxis(stack(parts, axis=-1), -1, axis)
