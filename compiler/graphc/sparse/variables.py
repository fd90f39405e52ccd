# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices as inputs, as shared variables, and made of their parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphc.config import config
from graphc.graph.shared import SharedVariable
from graphc.sparse.basic import CSM
from graphc.sparse.type import FORMATS, SparseTensorType, SparseVariable

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, SizeLike, TensorLike
    from graphc.sparse.like import Matrix


class SparseTensorSharedVariable(SparseVariable, SharedVariable):
    """A shared sparse matrix; its value is a matrix of SciPy."""


def share_matrix(
    value: Matrix, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None
) -> SparseTensorSharedVariable:
    """A shared variable with a sparse matrix of SciPy as its value; its shape may change.

    Raises:
        TypeError: the format is neither csr nor csc.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.shared(scipy.sparse.csr_matrix([[0.0, 2.0]]))
        >>> x.get_value().toarray()
        array([[0., 2.]])
    """
    if value.format not in FORMATS:
        raise TypeError(f"a shared sparse matrix must be in csr or csc format, got {value.format}")
    kind = SparseTensorType(value.format, value.dtype.name)
    return SparseTensorSharedVariable(kind, value, strict, allow_downcast, name)


def matrix(
    format: str,
    name: str | None = None,
    dtype: DTypeLike | None = None,
    shape: Iterable[int | None] | None = None,
) -> SparseVariable:
    """An input variable: a sparse matrix.

    Args:
        format: ``"csr"`` or ``"csc"``.
        name: a name for people.
        dtype: of the values; ``config.floatX`` by default.
        shape: two sizes, None where unknown.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.matrix("csc", "x")
        >>> y = graphc.sparse.transpose(x)
        >>> y.eval({x: scipy.sparse.csc_matrix([[0.0, 2.0]])}).toarray()
        array([[0.],
               [2.]])
    """
    return SparseTensorType(format, dtype or config.floatX, shape)(name)


def csr_matrix(
    name: str | None = None, dtype: DTypeLike | None = None, shape: Iterable[int | None] | None = None
) -> SparseVariable:
    """An input variable: a matrix of compressed rows; arguments as `matrix`.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.csr_matrix("x")
        >>> f = graphc.function([x], graphc.sparse.sp_sum(x))
        >>> float(f(scipy.sparse.csr_matrix([[0.0, 2.0], [3.0, 0.0]])))
        5.0
    """
    return matrix("csr", name, dtype, shape)


def csc_matrix(
    name: str | None = None, dtype: DTypeLike | None = None, shape: Iterable[int | None] | None = None
) -> SparseVariable:
    """An input variable: a matrix of compressed columns; arguments as `matrix`.

    Examples:
        >>> import scipy.sparse
        >>> x = graphc.sparse.csc_matrix("x")
        >>> f = graphc.function([x], graphc.sparse.sp_sum(x))
        >>> float(f(scipy.sparse.csc_matrix([[0.0, 2.0], [3.0, 0.0]])))
        5.0
    """
    return matrix("csc", name, dtype, shape)


def CSR(data: TensorLike, indices: TensorLike, indptr: TensorLike, shape: SizeLike) -> SparseVariable:
    """The matrix of compressed rows with these values, columns, starts of rows, and shape.

    Examples:
        >>> graphc.sparse.CSR([2.0, 3.0], [1, 0], [0, 1, 2], (2, 2)).eval().toarray()
        array([[0., 2.],
               [3., 0.]])
    """
    return CSM("csr")(data, indices, indptr, shape)


def CSC(data: TensorLike, indices: TensorLike, indptr: TensorLike, shape: SizeLike) -> SparseVariable:
    """The matrix of compressed columns with these values, rows, starts of columns, and shape.

    Examples:
        >>> graphc.sparse.CSC([2.0, 3.0], [1, 0], [0, 1, 2], (2, 2)).eval().toarray()
        array([[0., 3.],
               [2., 0.]])
    """
    return CSM("csc")(data, indices, indptr, shape)
