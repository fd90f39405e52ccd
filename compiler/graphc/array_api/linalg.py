# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The linear algebra extension of the array API standard.

Products are in its main namespace and in ``linalg``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import graphc.tensor as pt
from graphc.array_api.types import EighResult, QRResult, SlogdetResult, SVDResult, as_array
from graphc.hooks import publish
from graphc.tensor import linalg

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AxisLike, DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def matmul(x1: TensorLike, x2: TensorLike, /) -> TensorVariable:
    """Matrix products."""
    return pt.matmul(x1, x2)


def matrix_transpose(x: TensorLike, /) -> TensorVariable:
    """Matrices with rows and columns exchanged."""
    return pt.matrix_transpose(x)


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: int = 2) -> TensorVariable:
    """Sums of products over pairs of axes."""
    return pt.tensordot(x1, x2, axes)


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> TensorVariable:
    """Sums of products along an axis; the first operand is conjugated."""
    return linalg.vecdot(x1, x2, axis=axis)


def cholesky(x: TensorLike, /, *, upper: bool = False) -> TensorVariable:
    """Cholesky factors, lower or upper triangular."""
    return linalg.cholesky(x, lower=not upper)


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> TensorVariable:
    """Cross products of vectors of three elements."""
    return linalg.cross(x1, x2, axis=axis)


def det(x: TensorLike, /) -> TensorVariable:
    """Determinants."""
    return linalg.det(x)


def diagonal(x: TensorLike, /, *, offset: int = 0) -> TensorVariable:
    """Diagonals of the last two axes."""
    return linalg.diagonal(x, offset, -2, -1)


def trace(x: TensorLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> TensorVariable:
    """Sums of the diagonals of the last two axes."""
    return pt.sum(diagonal(x, offset=offset), -1, None if dtype is None else np.dtype(dtype).name)


def eigh(x: TensorLike, /) -> EighResult:
    """Eigenvalues in ascending order and eigenvectors of Hermitian matrices."""
    return EighResult(*linalg.eigh(x))


def eigvalsh(x: TensorLike, /) -> TensorVariable:
    """Eigenvalues of Hermitian matrices in ascending order."""
    return linalg.eigvalsh(x)


def inv(x: TensorLike, /) -> Variable:
    """Inverses."""
    return linalg.inv(x)


def matrix_norm(
    x: TensorLike, /, *, keepdims: bool = False, ord: float | str | None = "fro"
) -> TensorVariable:
    """Norms of matrices."""
    return linalg.matrix_norm(x, keepdims=keepdims, ord=ord)


def matrix_power(x: TensorLike, n: int, /) -> TensorVariable:
    """Powers of square matrices."""
    return linalg.matrix_power(x, n)


def matrix_rank(x: TensorLike, /, *, rtol: object = None) -> Variable:
    """Numbers of singular values above a limit relative to the largest."""
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: TensorLike, x2: TensorLike, /) -> TensorVariable:
    """Products of all pairs of elements of two vectors."""
    return linalg.outer(x1, x2)


def pinv(x: TensorLike, /, *, rtol: TensorLike | None = None) -> TensorVariable:
    """Pseudo-inverses."""
    return linalg.pinv(x, rcond=rtol)


def qr(x: TensorLike, /, *, mode: str = "reduced") -> QRResult:
    """QR decompositions."""
    return QRResult(*linalg.qr(x, mode=mode))


def slogdet(x: TensorLike, /) -> SlogdetResult:
    """Signs and logarithms of determinants."""
    return SlogdetResult(*linalg.slogdet(x))


def solve(x1: TensorLike, x2: TensorLike, /) -> TensorVariable:
    """Solutions of ``x1 @ x = x2``; a vector is only one where ``x2`` has one dimension."""
    x2 = as_array(x2)
    return linalg.solve(x1, x2, b_ndim=1 if x2.ndim == 1 else 2)


def svd(x: TensorLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decompositions."""
    return SVDResult(*linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: TensorLike, /) -> TensorVariable:
    """Singular values in descending order."""
    return linalg.svdvals(x)


def vector_norm(
    x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: float | str | None = 2
) -> TensorVariable:
    """Norms of vectors."""
    return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


publish(globals())
