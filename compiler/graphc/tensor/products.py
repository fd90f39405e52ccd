# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products of ``graphc.tensor``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.graph.tensor.type import TensorType, parse_dtype
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.math import cast
from graphc.ops.matrices import Matmul
from graphc.ops.shape import product_of, size_of, sizes_of
from graphc.ops.shaping import (
    BroadcastTo,
    Reshape,
    dimshuffle,
    expand_dims,
    ravel,
    shape_padleft,
    shape_padright,
    specify_shape,
    squeeze,
)

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

# How many axes, or a list of them for each operand.
PairedAxes: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]

__all__ = ["batched_dot", "batched_tensordot", "dense_dot", "dot", "inner", "matmul", "outer", "tensordot"]


def _vector_product(a: TensorVariable, b: TensorVariable) -> TensorVariable:
    if a.type.shape[0] is not None and b.type.shape[0] is not None and a.type.shape != b.type.shape:
        raise ValueError(
            f"dot product of vectors of sizes {a.type.shape[0]} and {b.type.shape[0]}: {a} and {b}"
        )
    # As a matrix product, so that a vector of size 1 does not broadcast.
    product = Matmul()(dimshuffle(a, ("x", 0)), dimshuffle(b, (0, "x")))
    return dimshuffle(product, ())


def dot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """NumPy's ``dot``: the last axis of a with the last but one of b; with a 0-d operand, the product.

    Raises:
        ValueError: the sizes of the summed axes differ, here or at run time.

    Examples:
        >>> pt.dot([1.0, 2.0], [3.0, 4.0]).eval()
        array(11.)
    """
    for operand, method, other in ((a, "__dot__", b), (b, "__rdot__", a)):
        if isinstance(operand, Variable) and not isinstance(operand.type, TensorType):  # a sparse matrix, say
            return getattr(operand, method)(other)
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if a.type.ndim == 0 or b.type.ndim == 0:
        return a * b
    if a.type.ndim > 2 or b.type.ndim > 2:
        return tensordot(a, b, [[a.type.ndim - 1], [max(b.type.ndim - 2, 0)]])
    return matmul(a, b)


def in_dtype(
    product: Callable[..., TensorVariable], dtype: DTypeLike, *operands: TensorLike
) -> TensorVariable:
    """A product computed in the dtype that holds its operands and the result, then cast to ``dtype``."""
    xs = [as_tensor_variable(x) for x in operands]
    wide = np.result_type(*(x.type.numpy_dtype for x in xs), np.dtype(parse_dtype(dtype))).name
    return cast(product(*(cast(x, wide) for x in xs)), dtype)


def matmul(x1: TensorLike, x2: TensorLike, dtype: DTypeLike | None = None) -> TensorVariable:
    """NumPy's ``matmul``: products of matrices; leading axes are a batch and broadcast.

    Args:
        x1: operand of at least one dimension.
        x2: operand of at least one dimension.
        dtype: dtype of the result; what the operands are promoted to by default. Operands are never rounded
            to it: the product is.

    Examples:
        >>> pt.matmul([[1, 2], [3, 4]], [1, 1]).eval()
        array([3, 7])
    """
    if dtype is not None:
        return in_dtype(matmul, dtype, x1, x2)
    a, b = as_tensor_variable(x1), as_tensor_variable(x2)
    if a.type.ndim == 0 or b.type.ndim == 0:
        raise ValueError(
            f"matmul takes operands of at least one dimension, got {a.type} and {b.type}; use mul"
        )
    if a.type.ndim == 1 and b.type.ndim == 1:
        return _vector_product(a, b)
    row, column = a.type.ndim == 1, b.type.ndim == 1
    a = dimshuffle(a, ("x", 0)) if row else a
    b = dimshuffle(b, (0, "x")) if column else b
    product = Matmul()(*_batched(a, b))
    ndim = product.type.ndim
    if row:
        return squeeze(product, ndim - 2)
    return squeeze(product, ndim - 1) if column else product


def _batched(a: TensorVariable, b: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Operands with equal leading sizes."""
    ndim = max(a.type.ndim, b.type.ndim)
    a, b = (shape_padleft(x, ndim - x.type.ndim) if x.type.ndim < ndim else x for x in (a, b))
    ones = [(m == 1, n == 1) for m, n in zip(a.type.shape[:-2], b.type.shape[:-2], strict=True)]
    if all(m == n for m, n in ones):
        return a, b
    of_a, of_b = sizes_of(a), sizes_of(b)
    batch = [of_b[i] if m else of_a[i] for i, (m, _) in enumerate(ones)]
    if any(m and not n for m, n in ones):
        a = BroadcastTo()(a, *batch, *of_a[-2:])
    if any(n and not m for m, n in ones):
        b = BroadcastTo()(b, *batch, *of_b[-2:])
    return a, b


def outer(x: TensorLike, y: TensorLike) -> TensorVariable:
    """Products of all pairs of elements, a matrix; operands are flattened.

    Examples:
        >>> pt.outer([1, 2], [3, 4]).eval()
        array([[3, 4],
               [6, 8]])
    """
    x, y = ravel(x), ravel(y)
    return dimshuffle(x, (0, "x")) * dimshuffle(y, ("x", 0))


def inner(a: TensorLike, b: TensorLike) -> TensorVariable:
    """Product over the last axes of both operands.

    Examples:
        >>> pt.inner([1, 2], [3, 4]).eval()
        array(11)
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if a.type.ndim == 0 or b.type.ndim == 0:
        return a * b
    return tensordot(a, b, [[a.type.ndim - 1], [b.type.ndim - 1]])


def _tensordot_axes(
    a: TensorVariable, b: TensorVariable, axes: int | Sequence[int | Sequence[int]]
) -> tuple[list[int], list[int]]:
    if not isinstance(axes, Sequence):
        if not 0 <= axes <= min(a.type.ndim, b.type.ndim):
            raise ValueError(f"tensordot cannot sum over {axes} axes of {a.type} and {b.type}")
        return list(range(a.type.ndim - axes, a.type.ndim)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(f"axes must be a number, or two lists of axes, got {axes}")
    pair = [list(part) if isinstance(part, Sequence) else [part] for part in axes]
    if len(pair[0]) != len(pair[1]):
        raise ValueError(f"tensordot needs as many axes of a as of b, got {axes}")
    return (
        [normalize_axis(axis, a.type.ndim, "tensordot") for axis in pair[0]],
        [normalize_axis(axis, b.type.ndim, "tensordot") for axis in pair[1]],
    )


def tensordot(a: TensorLike, b: TensorLike, axes: PairedAxes = 2) -> TensorVariable:
    """Sum of products over pairs of axes, as ``numpy.tensordot``.

    Args:
        a: first operand; its other axes come first in the result.
        b: second operand.
        axes: a number of axes (the last of a with the first of b), or a list of axes for each operand.

    Examples:
        >>> pt.tensordot([[1, 2], [3, 4]], [[1, 1], [1, 1]]).eval()
        array(10)
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    of_a, of_b = _tensordot_axes(a, b, axes)
    for i, j in zip(of_a, of_b, strict=True):
        m, n = a.type.shape[i], b.type.shape[j]
        if m is not None and n is not None and m != n:
            raise ValueError(f"tensordot: axis {i} of {a} has size {m}, axis {j} of {b} has size {n}")
    if not of_a and a.type.ndim == b.type.ndim == 0:
        return a * b
    if len(of_a) == 1 and a.type.ndim <= 2 and b.type.ndim <= 2:
        return dot(a if of_a[0] == a.type.ndim - 1 else a.T, b if of_b[0] == 0 else b.T)
    return contracted(a, b, of_a, of_b)


def contracted(
    a: TensorVariable,
    b: TensorVariable,
    of_a: Sequence[int],
    of_b: Sequence[int],
    batch_a: Sequence[int] = (),
    batch_b: Sequence[int] = (),
) -> TensorVariable:
    """A matrix product over axes of two tensors.

    Args:
        a, b: tensors.
        of_a, of_b: axes that are summed over, in pairs.
        batch_a, batch_b: axes of a batch of products, in pairs.

    Returns:
        The axes of the batch as a has them, then those left of a, then those left of b.
    """
    free_a = [axis for axis in range(a.type.ndim) if axis not in (*of_a, *batch_a)]
    free_b = [axis for axis in range(b.type.ndim) if axis not in (*of_b, *batch_b)]
    sizes_a, sizes_b, batch = sizes_of(a), sizes_of(b), len(batch_a)
    if len(of_a) > 1:
        b = _with_sizes_of(a, b, of_a, of_b)
    left = _grouped(dimshuffle(a, (*batch_a, *free_a, *of_a)), batch, len(free_a))
    right = _grouped(dimshuffle(b, (*batch_b, *of_b, *free_b)), batch, len(of_b))
    product = Matmul()(left, right)
    if len(free_a) == 1 and len(free_b) == 1:
        return product
    return Reshape()(product, *(sizes_a[i] for i in (*batch_a, *free_a)), *(sizes_b[i] for i in free_b))


def _with_sizes_of(
    a: TensorVariable, b: TensorVariable, of_a: Sequence[int], of_b: Sequence[int]
) -> TensorVariable:
    """b with the sizes of the axes of a that its axes are summed with: joined into one axis, they would only
    show that the products of these sizes agree.
    """
    expected: list[object] = [None] * b.type.ndim
    for i, j in zip(of_a, of_b, strict=True):
        if None in (a.type.shape[i], b.type.shape[j]):
            expected[j] = size_of(a, i)
    return b if all(size is None for size in expected) else specify_shape(b, expected)


def _grouped(x: TensorVariable, batch: int, split: int) -> TensorVariable:
    """x with the axes after the batch joined into two, the first of them made of ``split`` axes."""
    if split == 1 and x.type.ndim == batch + 2:
        return x
    sizes, middle = sizes_of(x), batch + split
    return Reshape()(x, *sizes[:batch], product_of(sizes[batch:middle]), product_of(sizes[middle:]))


def batched_dot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """``dot(a[i], b[i])`` for each i; operands have two or three dimensions, or more before them.

    Examples:
        >>> pt.batched_dot([[[1, 2]], [[3, 4]]], [[[1], [1]], [[2], [2]]]).eval().ravel()
        array([ 3, 14])
    """
    a, b = as_tensor_variable(a), as_tensor_variable(b)
    if a.type.ndim == 0 or b.type.ndim == 0:
        raise TypeError("batched_dot takes arrays with a first axis for the batch")
    if a.type.ndim == 1 or b.type.ndim == 1:
        thin, other = (a, b) if a.type.ndim == 1 else (b, a)
        return shape_padright(thin, other.type.ndim - 1) * other if other.type.ndim > 1 else thin * other
    if a.type.ndim > 3 or b.type.ndim > 3:
        return batched_tensordot(a, b, [[a.type.ndim - 1], [max(b.type.ndim - 2, 1)]])
    left = expand_dims(a, 1) if a.type.ndim == 2 else a
    right = expand_dims(b, 2) if b.type.ndim == 2 else b
    product = matmul(left, right)
    drop = tuple(axis for axis, x in ((1, a), (2, b)) if x.type.ndim == 2)
    return squeeze(product, drop) if drop else product


def batched_tensordot(
    x: TensorLike, y: TensorLike, axes: int | Sequence[int | Sequence[int]] = 2
) -> TensorVariable:
    """``tensordot(x[i], y[i], ...)`` for each i.

    Args:
        x, y: array-like.
        axes: how many axes are summed over: the last ones of x, the first ones of y after the batch; or the
            axes of x and those of y.

    Examples:
        >>> pt.batched_tensordot([[1, 2], [3, 4]], [[1, 1], [2, 2]], axes=1).eval()
        array([ 3, 14])
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if isinstance(axes, int | np.integer):
        axes = [list(range(x.type.ndim - int(axes), x.type.ndim)), list(range(1, int(axes) + 1))]
    left, right = (
        [normalize_axis(axis, v.type.ndim, "batched_tensordot") for axis in np.atleast_1d(given)]
        for v, given in zip((x, y), axes, strict=True)
    )
    if len(left) != len(right) or 0 in (*left, *right):
        raise ValueError(f"axes must be as many for x and y, and not the first one; got {axes}")
    return contracted(x, y, left, right, (0,), (0,))


def dense_dot(a: TensorLike, b: TensorLike) -> TensorVariable:
    """`dot` of dense arrays.

    Examples:
        >>> pt.dense_dot([[1, 2]], [[3], [4]]).eval()
        array([[11]])
    """
    return dot(a, b)
