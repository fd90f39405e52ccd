# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrices of a given structure, as ``scipy.linalg`` has them; diagonals and traces of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import operand
from graphc.ops.create import arange, eye, zeros_like
from graphc.ops.join import concatenate
from graphc.ops.math import cast
from graphc.ops.matrices import conj
from graphc.ops.shape import as_size, size_of, sizes_of
from graphc.ops.shaping import expand_dims, reshape
from graphc.ops.table.arithmetic import promote
from graphc.tensor import rearranging
from graphc.tensor.indexing import take
from graphc.tensor.linalg.checks import matrix

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["circulant", "companion", "diagonal", "hankel", "hilbert", "khatri_rao", "toeplitz", "trace"]


def _vector(x: TensorLike, what: str) -> TensorVariable:
    return operand(x, f"{what} takes vectors, or batches of them", 1)


def _common(x: Variable, y: Variable) -> tuple[TensorVariable, TensorVariable]:
    dtype = promote(x.type.numpy_dtype, y.type.numpy_dtype).name
    return cast(x, dtype), cast(y, dtype)


def toeplitz(c: TensorLike, r: TensorLike | None = None) -> TensorVariable:
    """Matrices with constant diagonals: ``out[i, j]`` is ``c[i - j]``, or ``r[j - i]`` above the main one.

    Args:
        c: first column (..., m).
        r: first row (..., n), of which the first element is not read; by default the conjugate of c.

    Examples:
        >>> pt.linalg.toeplitz([1, 2, 3]).eval()
        array([[1, 2, 3],
               [2, 1, 2],
               [3, 2, 1]])
    """
    c = _vector(c, "toeplitz")
    c, r = _common(c, conj(c) if r is None else _vector(r, "toeplitz"))
    m, n = size_of(c, c.type.ndim - 1), size_of(r, r.type.ndim - 1)
    # From the lower left corner along the border to the upper right one.
    border = concatenate([c[..., ::-1], r[..., 1:]], axis=-1)
    places = m - 1 - expand_dims(arange(m), 1) + expand_dims(arange(n), 0)
    return take(border, places, axis=-1)


def hankel(c: TensorLike, r: TensorLike | None = None) -> TensorVariable:
    """Matrices with constant antidiagonals.

    Args:
        c: first column (..., m).
        r: last row (..., n), of which the first element is not read; by default zeros.

    Examples:
        >>> pt.linalg.hankel([1, 2, 3]).eval()
        array([[1, 2, 3],
               [2, 3, 0],
               [3, 0, 0]])
    """
    c = _vector(c, "hankel")
    c, r = _common(c, zeros_like(c) if r is None else _vector(r, "hankel"))
    m, n = size_of(c, c.type.ndim - 1), size_of(r, r.type.ndim - 1)
    border = concatenate([c, r[..., 1:]], axis=-1)
    places = expand_dims(arange(m), 1) + expand_dims(arange(n), 0)
    return take(border, places, axis=-1)


def circulant(c: TensorLike) -> TensorVariable:
    """Square matrices whose columns are c (..., n), each turned one further than the one before.

    Examples:
        >>> pt.linalg.circulant([1, 2, 3]).eval()
        array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]])
    """
    c = _vector(c, "circulant")
    n = size_of(c, c.type.ndim - 1)
    places = (expand_dims(arange(n), 1) - expand_dims(arange(n), 0)) % n
    return take(c, places, axis=-1)


def companion(a: TensorLike) -> TensorVariable:
    """The matrix (n - 1, n - 1) whose eigenvalues are the zeros of a polynomial.

    Args:
        a: coefficients (n), highest power first; the first one is not 0.

    Examples:
        >>> pt.linalg.companion([1.0, -3.0, 2.0]).eval()
        array([[ 3., -2.],
               [ 1.,  0.]])
    """
    a = operand(a, "companion takes at least two coefficients", 1, 1)
    if a.type.shape[0] in (0, 1):
        raise ValueError(f"companion takes at least two coefficients, got {a} of type {a.type}")
    n = size_of(a, 0) - 1
    first = -a[1:] / a[0]
    shifted = eye(n - 1, n, dtype=first.type.dtype)
    return concatenate([expand_dims(first, 0), shifted], axis=0)


def hilbert(n: TensorLike) -> TensorVariable:
    """The float64 matrix with elements ``1 / (i + j + 1)``.

    Examples:
        >>> pt.linalg.hilbert(2).eval()
        array([[1.        , 0.5       ],
               [0.5       , 0.33333333]])
    """
    each = arange(as_size(n, "hilbert"))
    return 1.0 / (expand_dims(each, 1) + expand_dims(each, 0) + 1)


def khatri_rao(a: TensorLike, b: TensorLike) -> TensorVariable:
    """Kronecker products of the columns of matrices (m, k) and (n, k): (m n, k); leading axes are a batch.

    Examples:
        >>> pt.linalg.khatri_rao([[1, 2]], [[3, 4], [5, 6]]).eval()
        array([[ 3,  8],
               [ 5, 12]])
    """
    a, b = matrix(a, "khatri_rao"), matrix(b, "khatri_rao")
    product = expand_dims(a, -2) * expand_dims(b, -3)
    *batch, m, n, k = sizes_of(product)
    return reshape(product, (*batch, m * n, k))


def diagonal(a: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> TensorVariable:
    """A diagonal of each matrix, as ``numpy.linalg.diagonal``: ``(..., m, n) -> (..., k)``.

    Args:
        a: array-like of at least 2 dimensions.
        offset: which diagonal; positive ones are above the main diagonal.
        axis1, axis2: the axes of the matrices.

    Examples:
        >>> pt.linalg.diagonal([[1, 2], [3, 4]]).eval()
        array([1, 4])
    """
    return rearranging.diagonal(a, offset, axis1, axis2)


def trace(a: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> TensorVariable:
    """The sum of a diagonal of each matrix, as ``numpy.linalg.trace``; arguments as `diagonal`.

    Examples:
        >>> pt.linalg.trace([[1, 2], [3, 4]]).eval()
        array(5)
    """
    return rearranging.trace(a, offset, axis1, axis2)
