# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products, sums and elementwise functions of sparse matrices.

What keeps the places of the values is done on them by compiled code, as are products with dense matrices.
Sums and products of two sparse matrices, whose places depend on data, are left to SciPy.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import FieldOp, multilinear
from graphc.graph.tensor.convert import as_tensor_variable, operand
from graphc.graph.tensor.type import parse_dtype
from graphc.ops.join import stack
from graphc.ops.math import cast as cast_
from graphc.ops.math import real
from graphc.ops.shaping import dimshuffle, reshape, specify_shape
from graphc.ops.shaping import transpose as transpose_
from graphc.ops.sparse import CsrProduct, CsrSampledProduct
from graphc.ops.table.arithmetic import promote
from graphc.sparse.basic import (
    CSM,
    Regular,
    as_dense,
    as_sparse_or_tensor_variable,
    as_sparse_variable,
    csm_data,
    csm_properties,
    in_format,
    is_sparse,
    positions,
    same_pattern,
    same_places,
    size_along,
)
from graphc.sparse.conversion import SparseFromDense
from graphc.sparse.type import SparseTensorType

if TYPE_CHECKING:
    from graphc.graph.tensor import DTypeLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import Matrix, MatrixLike, SparseLike, SparseOrTensor
    from graphc.sparse.type import SparseVariable
    from graphc_runtime.thunk import Register


def with_data(x: Variable, data: TensorVariable) -> SparseVariable:
    """The sparse matrix with other values at the same places."""
    return CSM(x.type.format)(data, *csm_properties(x)[1:])


def transpose(x: SparseLike) -> SparseVariable:
    """The transpose; compressed rows become compressed columns.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.transpose(x).eval().shape
        (2, 1)
    """
    x = as_sparse_variable(x)
    data, indices, indptr, sizes = csm_properties(x)
    other = "csc" if x.type.format == "csr" else "csr"
    known = x.type.shape[::-1]
    swapped = stack([size_along(x, 1), size_along(x, 0)]) if None not in known else sizes[::-1]
    return Regular(_transposed)(CSM(other)(data, indices, indptr, swapped), x)


def _transposed(g: Variable, sources: Variables, parameter: object) -> Maybe:
    return [transpose(g)]


# -- products ------------------------------------------------------------------------------------------------


def _operands(x: MatrixLike, y: MatrixLike, what: str) -> tuple[SparseOrTensor, SparseOrTensor]:
    """Two operands of which one at least is sparse."""
    x, y = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    if not is_sparse(x) and not is_sparse(y):
        raise TypeError(f"{what} takes a sparse matrix, got {x} of type {x.type} and {y} of type {y.type}")
    return x, y


def structured_dot(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
    """The product of a sparse matrix and a dense matrix or vector, or of a dense and a sparse one.

    Args:
        x, y: matrices, one of them sparse; the dense one may be a vector.

    Returns:
        A tensor. Its gradient by the sparse matrix has values where that has them.

    Raises:
        TypeError: none of them is sparse, or the dense one has other than 1 or 2 dimensions.
        ValueError: sizes do not fit.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.structured_dot(x, np.array([[1.0], [3.0]])).eval()
        array([[6.]])
    """
    x, y = _operands(x, y, "structured_dot")
    if not is_sparse(x):
        return _dense_times_sparse(x, y)
    if is_sparse(y):
        return true_dot(x, y)
    if y.type.ndim not in (1, 2):
        raise TypeError(f"a sparse matrix is multiplied by matrices and vectors, got {y} of type {y.type}")
    m, n = x.type.shape[1], y.type.shape[0]
    if m is not None and n is not None and m != n:
        raise ValueError(
            f"product of {x} of type {x.type} and {y} of type {y.type}: sizes {m} and {n} differ"
        )
    dense = specify_shape(y, (size_along(x, 1), *[None] * (y.type.ndim - 1))) if m is None or n is None else y
    dense = dimshuffle(dense, (0, "x")) if y.type.ndim == 1 else dense
    data, indices, indptr, _ = csm_properties(x)
    out: TensorVariable = CsrProduct(x.type.format == "csc")(data, indices, indptr, dense, size_along(x, 0))
    return dimshuffle(out, (0,)) if y.type.ndim == 1 else out


def _dense_times_sparse(x: Variable, y: Variable) -> TensorVariable:
    if x.type.ndim not in (1, 2):
        raise TypeError(f"a sparse matrix is multiplied by matrices and vectors, got {x} of type {x.type}")
    out = structured_dot(transpose(y), transpose_(x))
    return transpose_(out)


def dot(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
    """Matrix product where at least one operand is sparse; of two sparse ones, sparse.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.dot(x, np.array([1.0, 3.0])).eval()
        array([6.])
    """
    x, y = _operands(x, y, "dot")
    if is_sparse(x) and is_sparse(y):
        return true_dot(x, y)
    return structured_dot(x, y)


def true_dot(x: MatrixLike, y: MatrixLike) -> SparseVariable:
    """The product of two sparse matrices, sparse; SciPy computes it.

    Args:
        x, y: sparse matrices; one of them may be dense and is made sparse first.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.true_dot(x, x.T).eval().toarray()
        array([[4.]])
    """
    x, y = _operands(x, y, "true_dot")
    format = x.type.format if is_sparse(x) else y.type.format
    x, y = (v if is_sparse(v) else SparseFromDense(format)(v) for v in (x, y))
    return SparseSparse("dot")(x, y)


def sampling_dot(x: TensorLike, y: TensorLike, p: SparseLike) -> SparseVariable:
    """The elements of ``dot(x, y.T)`` where a sparse matrix has values, times those values.

    Args:
        x: dense matrix (m, k).
        y: dense matrix (n, k).
        p: sparse matrix (m, n).

    Examples:
        >>> p = graphc.sparse.csr_from_dense([[1.0, 0.0]])
        >>> graphc.sparse.sampling_dot(np.ones((1, 3)), np.ones((2, 3)), p).eval().toarray()
        array([[3., 0.]])
    """
    x, y = (operand(v, "sampling_dot takes two matrices", 2, 2, error=TypeError) for v in (x, y))
    p = as_sparse_variable(p)
    pair = (x, y) if p.type.format == "csr" else (y, x)
    data, indices, indptr, _ = csm_properties(p)
    dtype = promote(x.type.numpy_dtype, y.type.numpy_dtype).name
    sampled = CsrSampledProduct()(indices, indptr, *(cast_(v, dtype) for v in pair))
    return with_data(p, sampled * data)


def usmm(alpha: TensorLike, x: MatrixLike, y: MatrixLike, z: TensorLike) -> TensorVariable:
    """``alpha * dot(x, y) + z``, dense, of matrices of which x or y is sparse.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.usmm(10.0, x, pt.constant(np.eye(2)), pt.constant(np.ones((2, 2)))).eval()
        array([[ 1., 21.],
               [31.,  1.]])
    """
    return as_tensor_variable(alpha) * structured_dot(x, y) + as_tensor_variable(z)


# -- elementwise ---------------------------------------------------------------------------------------------


def structured(function: Callable[[TensorVariable], TensorVariable], x: SparseLike) -> SparseVariable:
    """A function of the values; what has no value stays without."""
    x = as_sparse_variable(x)
    return with_data(x, function(csm_data(x)))


def neg(x: SparseLike) -> SparseVariable:
    """The negative.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.neg(x).eval().toarray()
        array([[ 0., -2.]])
    """
    x = as_sparse_variable(x)
    return Regular(lambda g, sources, parameter: [neg(g)])(structured(lambda v: -v, x), x)


def cast(x: SparseLike, dtype: DTypeLike) -> SparseVariable:
    """The values in another dtype. Of complex numbers the real part is taken, with a warning, as in SciPy.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.cast(x, "float32").eval().dtype
        dtype('float32')
    """
    x = as_sparse_variable(x)
    if x.type.kind == "c" and np.dtype(parse_dtype(dtype)).kind not in "cb":
        warnings.warn(
            f"the cast of {x} from {x.type.dtype} to {dtype} discards the imaginary part",
            np.exceptions.ComplexWarning,
            stacklevel=2,
        )
        return Regular(_cast_back)(structured(lambda v: cast_(real(v), dtype), x), x)
    return Regular(_cast_back)(structured(lambda v: cast_(v, dtype), x), x)


def _cast_back(g: Variable, sources: Variables, parameter: object) -> Maybe:
    (x,) = sources
    kinds = g.type.kind, x.type.kind
    if kinds == ("c", "f"):
        g = structured(real, g)
    return [g if kinds[1] not in "fc" else cast(g, x.type.dtype)]


def _two(x: MatrixLike, y: MatrixLike, what: str) -> tuple[SparseOrTensor, SparseOrTensor]:
    x, y = _operands(x, y, what)
    for a, b in zip(x.type.shape, y.type.shape, strict=False):
        if x.type.ndim == y.type.ndim and a is not None and b not in (None, a) and 1 not in (a, b):
            raise ValueError(f"{what}: {x} of type {x.type} and {y} of type {y.type} differ in shape")
    return x, y


def add(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
    """The sum: sparse of two sparse matrices, else dense.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.add(x, x).eval().toarray()
        array([[0., 4.]])
    """
    x, y = _two(x, y, "add")
    if is_sparse(x) and is_sparse(y):
        if same_pattern(x, y):
            return Regular(same_places)(with_data(x, csm_data(x) + csm_data(y)), x, y)
        return SparseSparse("add")(x, y)
    return (as_dense(x) if is_sparse(x) else x) + (as_dense(y) if is_sparse(y) else y)


def sub(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
    """The difference; as `add`.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.sub(x, graphc.sparse.sp_ones_like(x)).eval().toarray()
        array([[0., 1.],
               [2., 0.]])
    """
    x, y = as_sparse_or_tensor_variable(x), as_sparse_or_tensor_variable(y)
    return add(x, neg(y) if is_sparse(y) else -y)


def mul(x: MatrixLike, y: MatrixLike) -> SparseVariable:
    """The product of elements, sparse.

    Args:
        x, y: matrices of one shape, one of them sparse; the other may be a number, a vector (along the last
            axis), or a matrix with axes of static size 1.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> graphc.sparse.mul(x, pt.constant([[1.0, 10.0], [100.0, 1.0]])).eval().toarray()
        array([[  0.,  20.],
               [300.,   0.]])
    """
    x, y = _two(x, y, "mul")
    if not is_sparse(x):
        return _scaled(y, x)
    if not is_sparse(y):
        return _scaled(x, y)
    if same_pattern(x, y):
        return Regular(_factors)(with_data(x, csm_data(x) * csm_data(y)), x, y)
    return SparseSparse("mul")(x, y)


def _scaled(x: Variable, y: TensorVariable) -> SparseVariable:
    """The product of the elements of a sparse matrix and of a tensor."""
    if y.type.ndim > 2:
        raise TypeError(f"a sparse matrix is multiplied by at most 2 dimensions, got {y} of type {y.type}")
    return with_data(x, csm_data(x) * along_axes(y, x))


def _factors(g: Variable, sources: Variables, parameter: object) -> list[Variable | None]:
    x, y = sources
    return [in_format(mul(g, y), x.type.format), in_format(mul(g, x), y.type.format)]


def along_axes(y: TensorVariable, x: Variable) -> TensorVariable:
    """The elements of a tensor at the places of the values of a sparse matrix."""
    if all(y.type.broadcastable):
        return dimshuffle(y, ())
    rows, columns = positions(x)
    if y.type.ndim == 1:
        return y[columns]
    if y.type.broadcastable[0]:
        return dimshuffle(y, (1,))[columns]
    if y.type.broadcastable[1]:
        return dimshuffle(y, (0,))[rows]
    dense = specify_shape(y, (size_along(x, 0), size_along(x, 1)))
    return reshape(dense, (-1,))[rows * size_along(x, 1) + columns]


# On SciPy's matrices.
_OF_TWO: dict[str, Callable[..., Matrix]] = {
    **{name: getattr(operator, name) for name in ("add", "eq", "lt", "le", "gt", "ge")},
    "mul": lambda x, y: x.multiply(y),
    "dot": operator.matmul,
    "neq": operator.ne,
}


class SparseSparse(FieldOp):
    """Sum, product of elements, or matrix product of two sparse matrices of one format, by SciPy.

    Args:
        kind: add, mul or dot.
    """

    kind: str

    def make_node(self, x: SparseLike, y: SparseLike) -> Apply:
        x, y = as_sparse_variable(x), as_sparse_variable(y)
        dtype = self._dtype(x.type.numpy_dtype, y.type.numpy_dtype)
        shape: tuple[int | None, ...]
        if self.kind == "dot":
            shape = (x.type.shape[0], y.type.shape[1])
        else:
            shape = tuple(n if m is None else m for m, n in zip(x.type.shape, y.type.shape, strict=True))
        return Apply(self, [x, y], [SparseTensorType(x.type.format, dtype, shape).make_variable()])

    def _dtype(self, x: np.dtype, y: np.dtype) -> str:
        return np.result_type(x, y).name

    def perform(self, node: Apply, inputs: Sequence[Matrix], output_storage: Sequence[Register]) -> None:
        x, y = inputs
        if self.kind != "dot" and x.shape != y.shape:
            raise ValueError(f"{self.kind}: sparse matrices of shapes {x.shape} and {y.shape}")
        out = _OF_TWO[self.kind](x, y).asformat(x.format)
        output_storage[0][0] = node.outputs[0].type.filter(out, allow_downcast=True)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x, y), g = inputs, only(cotangents)
        if self.kind == "add":
            return same_places(g, (x, y), None)
        if self.kind == "mul":
            return _factors(g, (x, y), None)
        terms = true_dot(g, transpose(y)), true_dot(transpose(x), g)
        return [in_format(t, v.type.format) for t, v in zip(terms, (x, y), strict=True)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        if self.kind != "add":
            return multilinear(self, inputs, outputs, tangents)
        return [reduce(operator.add, [t for t in tangents if t is not None])]


class Compare(SparseSparse):
    """Elementwise comparison of two sparse matrices by SciPy, a sparse matrix of booleans.

    Args:
        kind: eq, neq, lt, le, gt or ge.
    """

    depends_on = ()

    def _dtype(self, x: np.dtype, y: np.dtype) -> str:
        return "bool"
