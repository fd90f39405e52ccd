# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms, and numbers that depend on singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.graph.tensor.convert import as_tensor_variable, constant
from graphc.ops.dimshuffle import normalize_axes
from graphc.ops.elementwise import floating
from graphc.ops.math import abs as abs_
from graphc.ops.math import cast, gt, imag, maximum, ne, real, sqr, sqrt
from graphc.ops.math import pow as pow_
from graphc.ops.matrices import float_dtype, real_dtype
from graphc.ops.reduce import max as max_
from graphc.ops.reduce import min as min_
from graphc.ops.reduce import sum as sum_
from graphc.ops.shape import size_of
from graphc.ops.shaping import dimshuffle, expand_dims, moveaxis, ravel, reshape, squeeze
from graphc.tensor.linalg.checks import matrix, square
from graphc.tensor.linalg.decompositions import svd
from graphc.tensor.linalg.functions import inv

if TYPE_CHECKING:
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

_INFINITIES = {"inf": np.inf, "-inf": -np.inf}


def norm(
    x: TensorLike, ord: float | str | None = None, axis: AxisLike = None, keepdims: bool = False
) -> TensorVariable:
    """Norms of vectors or matrices, as ``numpy.linalg.norm`` of each matrix.

    Args:
        x: array-like; integers become float64.
        ord: None, a number, "fro", "nuc", inf or -inf ("inf", "-inf").
        axis: an axis along which vectors lie, or two of matrices; by default all of x, or the last two of
            more than two, as in PyTensor. (``numpy.linalg.norm`` of a variable takes all elements, as NumPy
            does where no ``ord`` is given.)
        keepdims: reduced axes stay with size 1.

    Examples:
        >>> pt.linalg.norm([3.0, 4.0]).eval()
        array(5.)
    """
    x = floating(x)
    if isinstance(ord, str):
        ord = _INFINITIES.get(ord, "fro" if ord == "f" else ord)
    if axis is None:
        if ord is not None and x.type.ndim == 0:
            raise ValueError(f"norm with ord={ord!r} takes vectors or matrices, got {x} of type {x.type}")
        axes = tuple(range(x.type.ndim))[-2:]
        if ord is None:
            return sqrt(sum_(_squares(x), axis=axes, keepdims=keepdims))
    else:
        given = (axis,) if isinstance(axis, int | np.integer) else tuple(axis)
        axes = tuple(normalize_axes([a], x.type.ndim, "norm")[0] for a in given)
    if len(axes) == 1:
        return _vector(x, ord, axes[0], keepdims)
    if len(axes) == 2 and axes[0] != axes[1]:
        return _matrix(x, ord, axes[0], axes[1], keepdims)
    raise ValueError(f"norm takes one or two different axes, got {axis!r}")


def _squares(x: TensorVariable) -> TensorVariable:
    if x.type.kind == "c":
        return sqr(real(x)) + sqr(imag(x))
    return sqr(x)


def _vector(x: TensorVariable, ord: float | str | None, axis: int, keepdims: bool) -> TensorVariable:
    if ord is None or ord == 2:
        return sqrt(sum_(_squares(x), axis=axis, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"vectors have no norm of order {ord!r}")
    size = abs_(x)
    if ord == np.inf:
        return max_(size, axis=axis, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min_(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return cast(sum_(ne(x, 0), axis=axis, keepdims=keepdims), size.type.dtype)
    if ord == 1:
        return sum_(size, axis=axis, keepdims=keepdims)
    return pow_(sum_(pow_(size, ord), axis=axis, keepdims=keepdims), 1.0 / ord)


def _matrix(
    x: TensorVariable, ord: float | str | None, row: int, column: int, keepdims: bool
) -> TensorVariable:
    axes = (row, column)
    if ord is None or ord == "fro":
        return sqrt(sum_(_squares(x), axis=axes, keepdims=keepdims))
    if ord in ("nuc", 2, -2):
        values: Any = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        found = (
            sum_(values, axis=-1)
            if ord == "nuc"
            else max_(values, axis=-1, initial=0)
            if ord == 2
            else min_(values, axis=-1)
        )
        return expand_dims(found, axes) if keepdims else found
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"matrices have no norm of order {ord!r}")
    inner, outer = (row, column) if abs(ord) == 1 else (column, row)
    sums = sum_(abs_(x), axis=inner, keepdims=True)
    found = min_(sums, axis=outer, keepdims=True) if ord < 0 else max_(sums, outer, True, initial=0)
    return found if keepdims else squeeze(found, axes)


def vector_norm(
    x: TensorLike, *, axis: AxisLike = None, keepdims: bool = False, ord: float | str | None = 2
) -> TensorVariable:
    """Norms of vectors, as ``numpy.linalg.vector_norm``; by default all elements are one vector.

    Examples:
        >>> pt.linalg.vector_norm([3.0, 4.0]).eval()
        array(5.)
    """
    x = floating(x)
    if axis is None:
        found = _vector(ravel(x), ord, 0, False)
        return expand_dims(found, tuple(range(x.type.ndim))) if keepdims and x.type.ndim else found
    if isinstance(axis, int | np.integer):
        return norm(x, ord, int(axis), keepdims)
    axes = normalize_axes(axis, x.type.ndim, "vector_norm")
    others = [i for i in range(x.type.ndim) if i not in axes]
    moved = dimshuffle(x, (*others, *axes))
    sizes = [size_of(x, i) for i in others]
    count: TensorVariable = constant(1, dtype="int64")
    for i in axes:
        count = count * size_of(x, i)
    found = _vector(reshape(moved, (*sizes, count)), ord, len(others), False)
    return expand_dims(found, tuple(axes)) if keepdims else found


def matrix_norm(x: TensorLike, *, keepdims: bool = False, ord: float | str | None = "fro") -> TensorVariable:
    """Norms of matrices (..., m, n), as ``numpy.linalg.matrix_norm``.

    Examples:
        >>> pt.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]).eval()
        array(5.)
    """
    return norm(matrix(x, "matrix_norm"), ord, (-2, -1), keepdims)


def cond(x: TensorLike, p: float | str | None = None) -> TensorVariable:
    """Condition numbers, as ``numpy.linalg.cond``.

    Args:
        x: array-like (..., m, n); square unless p is None, 2 or -2.
        p: order of the norm; None is 2. Singular matrices have an infinite one for 2, and raise for the
            orders that invert.

    Examples:
        >>> pt.linalg.cond(np.diag([4.0, 2.0])).round(6).eval()
        array(2.)
    """
    x = matrix(x, "cond")
    if p in (None, 2, -2):
        values: Any = svd(floating(x), compute_uv=False)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    x = square(x, "cond")
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))


def matrix_rank(
    A: TensorLike, tol: TensorLike | None = None, hermitian: bool = False, rtol: Any = None
) -> TensorVariable:
    """Number of singular values that are larger than a limit, int64.

    Args:
        A: array-like (..., m, n).
        tol: the limit; by default rtol times the largest singular value.
        hermitian: for compatibility; the result is the same.
        rtol: a number or one for each matrix; by default the precision times max(m, n).

    Examples:
        >>> pt.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).eval()
        array(1)
    """
    a = matrix(A, "matrix_rank")
    values: Any = svd(a, compute_uv=False)
    if tol is None:
        if rtol is None:
            dtype = float_dtype(a.type.dtype)
            m, n = (size_of(a, a.type.ndim + axis) for axis in (-2, -1))
            rtol = cast(maximum(m, n), real_dtype(dtype)) * float(np.finfo(dtype).eps)
        elif np.ndim(rtol):
            rtol = expand_dims(rtol, -1)
        tol = max_(values, axis=-1, keepdims=True, initial=0) * rtol
    else:
        tol = expand_dims(as_tensor_variable(tol), -1)
    return cast(sum_(gt(values, tol), axis=-1), "int64")
