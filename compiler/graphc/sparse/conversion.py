# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse matrices from dense ones and from vectors, and without zeros among their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import FieldOp, Op
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import TensorType
from graphc.ops.create import arange
from graphc.ops.join import stack
from graphc.ops.shaping import shape_padleft
from graphc.sparse.basic import (
    CSM,
    Regular,
    as_dense,
    as_sparse_variable,
    csm_properties,
    is_sparse,
    same_places,
)
from graphc.sparse.type import SparseTensorType

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import Matrix, SparseLike
    from graphc.sparse.type import SparseVariable
    from graphc_runtime.thunk import Register


def matrix_of(format: str, array: np.ndarray) -> Matrix:
    """SciPy's matrix of a dense one."""
    import scipy.sparse

    return getattr(scipy.sparse, f"{format}_matrix")(array)


class SparseFromDense(FieldOp):
    """The sparse matrix of the elements of a matrix that are not zero.

    Args:
        format: ``"csr"`` or ``"csc"``.
    """

    format: str

    def make_node(self, x: TensorLike) -> Apply:
        x = operand(x, "a sparse matrix has at most 2 dimensions", 0, 2, error=TypeError)
        x = shape_padleft(x, 2 - x.type.ndim) if x.type.ndim < 2 else x
        return Apply(self, [x], [SparseTensorType(self.format, x.type.dtype, x.type.shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        output_storage[0][0] = matrix_of(self.format, inputs[0])

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        g = only(cotangents)
        return [as_dense(g) if is_sparse(g) else g]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [self(only(tangents))]


def csr_from_dense(x: TensorLike) -> SparseVariable:
    """A matrix of compressed rows from a tensor of at most 2 dimensions.

    Examples:
        >>> graphc.sparse.csr_from_dense([[0.0, 2.0]]).eval().toarray()
        array([[0., 2.]])
    """
    return SparseFromDense("csr")(x)


def csc_from_dense(x: TensorLike) -> SparseVariable:
    """A matrix of compressed columns from a tensor of at most 2 dimensions.

    Examples:
        >>> graphc.sparse.csc_from_dense([[0.0, 2.0]]).eval().toarray()
        array([[0., 2.]])
    """
    return SparseFromDense("csc")(x)


def dense_from_sparse(x: SparseLike, structured: bool = True) -> TensorVariable:
    """A sparse matrix as a tensor.

    Args:
        x: sparse matrix.
        structured: whether its gradient has values only where the matrix has them; else it has them wherever
            the gradient by the tensor is not zero.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.dense_from_sparse(x).eval()
        array([[0., 2.]])
    """
    x = as_sparse_variable(x)
    return as_dense(x) if structured else Regular(_from_dense)(as_dense(x), x)


def _from_dense(g: Variable, sources: Variables, parameter: object) -> Maybe:
    return [SparseFromDense(x.type.format)(g) for x in sources]


class NotZero(Op):
    """The nonzero values of a sparse matrix: positions, indices and indptr without the others.

    Inputs: data, indices, indptr.
    """

    __props__ = ()
    depends_on = ()

    def make_node(self, *inputs: TensorLike) -> Apply:
        outputs = [TensorType(dtype, (None,)).make_variable() for dtype in ("int64", "int32", "int32")]
        return Apply(self, [as_tensor_variable(x) for x in inputs], outputs)

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        data, indices, indptr = inputs
        places = np.flatnonzero(data)
        output_storage[0][0] = places.astype(np.int64)
        output_storage[1][0] = indices[places].astype(np.int32)
        output_storage[2][0] = np.searchsorted(places, indptr).astype(np.int32)


def remove0(x: SparseLike) -> SparseVariable:
    """A sparse matrix without the values that are zero.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.remove0(x).eval().nnz
        1
    """
    x = as_sparse_variable(x)
    data, indices, indptr, sizes = csm_properties(x)
    places, indices, indptr = NotZero()(data, indices, indptr)
    return Regular(same_places)(CSM(x.type.format)(data[places], indices, indptr, sizes), x)


def square_diagonal(diagonal: TensorLike) -> SparseVariable:
    """A square matrix of compressed columns with a vector on its diagonal.

    Examples:
        >>> graphc.sparse.square_diagonal([1.0, 2.0]).eval().toarray()
        array([[1., 0.],
               [0., 2.]])
    """
    d = operand(diagonal, "a diagonal must be a vector", 1, 1, error=TypeError)
    n = d.shape[0]
    return CSM("csc")(d, arange(n), arange(n + 1), stack([n, n]))
