# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices with the places of others: scaled, added to, filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.create import ones_like, zeros, zeros_like
from graphc.ops.shaping import dimshuffle
from graphc.sparse.arithmetic import along_axes, mul, structured, with_data
from graphc.sparse.basic import (
    CSM,
    as_sparse_variable,
    csm_data,
    csm_properties,
)

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.sparse.like import MatrixLike, SparseLike
    from graphc.sparse.type import SparseVariable


def sp_ones_like(x: SparseLike) -> SparseVariable:
    """Ones at the places of the values.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.sp_ones_like(x).eval().toarray()
        array([[0., 1.],
               [1., 0.]])
    """
    return structured(ones_like, x)


def sp_zeros_like(x: SparseLike) -> SparseVariable:
    """A sparse matrix of the same shape without values.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.sp_zeros_like(x).eval().nnz
        0
    """
    x = as_sparse_variable(x)
    _, indices, indptr, sizes = csm_properties(x)
    return CSM(x.type.format)(zeros(0, dtype=x.type.dtype), indices[:0], zeros_like(indptr), sizes)


def col_scale(x: SparseLike, s: MatrixLike) -> SparseVariable:
    """The columns of a sparse matrix times the elements of a vector.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.col_scale(x, pt.constant([10.0, 1.0])).eval().toarray()
        array([[ 0.,  2.],
               [30.,  0.]])
    """
    return mul(x, s)


def row_scale(x: SparseLike, s: TensorLike) -> SparseVariable:
    """The rows of a sparse matrix times the elements of a vector.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.row_scale(x, pt.constant([10.0, 1.0])).eval().toarray()
        array([[ 0., 20.],
               [ 3.,  0.]])
    """
    return mul(x, dimshuffle(s, (0, "x")))


def add_s_s_data(x: SparseLike, y: SparseLike) -> SparseVariable:
    """The sum of two sparse matrices of one format that have their values at the same places.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.add_s_s_data(x, x).eval().toarray()
        array([[0., 4.],
               [6., 0.]])
    """
    x, y = as_sparse_variable(x), as_sparse_variable(y)
    if x.type.format != y.type.format:
        raise TypeError(f"add_s_s_data takes matrices of one format, got types {x.type} and {y.type}")
    return with_data(x, csm_data(x) + csm_data(y))


def structured_add_s_v(x: SparseLike, v: TensorLike) -> SparseVariable:
    """A vector added to each row of a sparse matrix, where that has values.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.structured_add_s_v(x, pt.constant([10.0, 20.0])).eval().toarray()
        array([[ 0., 22.],
               [13.,  0.]])
    """
    x, v = as_sparse_variable(x), as_tensor_variable(v)
    if v.type.ndim != 1:
        raise TypeError(f"structured_add_s_v takes a vector, got {v} of type {v.type}")
    return with_data(x, csm_data(x) + along_axes(v, x))
