# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices with the places of others: scaled, added to, filled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphc.graph.basic import Variable
from graphc.graph.tensor.convert import as_tensor_variable
from graphc.public import pt
from graphc.sparse.arithmetic import along_axes, mul, structured, with_data
from graphc.sparse.basic import (
    CSM,
    as_sparse_variable,
    csm_data,
    csm_properties,
)

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def sp_ones_like(x: Any) -> Any:
    """Ones at the places of the values.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.sp_ones_like(x).eval().toarray()
        array([[0., 1.],
               [1., 0.]])
    """
    return structured(pt.ones_like, x)


def sp_zeros_like(x: Variable) -> Variable:
    """A sparse matrix of the same shape without values.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.sp_zeros_like(x).eval().nnz
        0
    """
    x = as_sparse_variable(x)
    _, indices, indptr, sizes = csm_properties(x)
    return CSM(x.type.format)(pt.zeros(0, dtype=x.type.dtype), indices[:0], pt.zeros_like(indptr), sizes)


def col_scale(x: Any, s: Any) -> Any:
    """The columns of a sparse matrix times the elements of a vector.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.col_scale(x, pt.constant([10.0, 1.0])).eval().toarray()
        array([[ 0.,  2.],
               [30.,  0.]])
    """
    return mul(x, s)


def row_scale(x: Variable, s: TensorVariable) -> Variable:
    """The rows of a sparse matrix times the elements of a vector.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.row_scale(x, pt.constant([10.0, 1.0])).eval().toarray()
        array([[ 0., 20.],
               [ 3.,  0.]])
    """
    return mul(x, pt.dimshuffle(s, (0, "x")))


def add_s_s_data(x: TensorLike, y: TensorLike) -> Any:
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


def structured_add_s_v(x: TensorLike, v: TensorLike) -> Any:
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
