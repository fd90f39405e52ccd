# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the values of a sparse matrix; what has no value stays without one.

So do comparisons, and matrices with the places of others: scaled, added to, filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import operand
from graphc.hooks import named
from graphc.ops.create import ones_like, zeros, zeros_like
from graphc.ops.math import conj as conj_
from graphc.ops.shaping import dimshuffle
from graphc.sparse.arithmetic import Compare, along_axes, mul, structured, with_data
from graphc.sparse.basic import CSM, as_dense, as_sparse_variable, csm_data, csm_properties, is_sparse
from graphc.tensor import compat as math

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.sparse.like import MatrixLike, SparseLike, SparseOrTensor
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
    x, v = as_sparse_variable(x), operand(v, "structured_add_s_v takes a vector", 1, 1, error=TypeError)
    return with_data(x, csm_data(x) + along_axes(v, x))


def _comparison(kind: str, words: str) -> Callable[[MatrixLike, MatrixLike], SparseOrTensor]:
    def function(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
        if is_sparse(x) and is_sparse(y):
            return Compare(kind)(x, y)
        x, y = (as_dense(v) if is_sparse(v) else v for v in (x, y))
        return getattr(math, kind)(x, y)

    doc = f"""Where x is {words} y: sparse of two sparse matrices, else dense booleans.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.{kind}(x, 0.5).eval().shape
        (1, 2)
    """
    return named(function, kind, doc)


_WORDS = ("equal to", "different from", "less than", "at most", "greater than", "at least")
eq, neq, lt, le, gt, ge = map(_comparison, ("eq", "neq", "lt", "le", "gt", "ge"), _WORDS)


# Functions that are 0 at 0, by the name of `graphc.tensor`: those of the matrix.
_OF_ZERO = (
    "abs", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p",
    "rad2deg", "rint", "sign", "sin", "sinh", "sqr", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
# Others are functions of the values only, which their name says.
_OF_VALUES = ("exp", "log", "sigmoid")
_OF_TWO = {"pow": "pow", "minimum": "minimum", "maximum": "maximum", "add": "add"}


def _one(name: str, public: str) -> Callable[[SparseLike], SparseVariable]:
    def function(x: SparseLike) -> SparseVariable:
        return structured(getattr(math, name), x)

    doc = f"""``{name}`` of the values of a sparse matrix; what has no value stays without.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.{public}(x).eval().nnz
        1
    """
    return named(function, public, doc)


def _two(name: str) -> Callable[[SparseLike, TensorLike], SparseVariable]:
    def function(x: SparseLike, y: TensorLike) -> SparseVariable:
        return structured(lambda values: getattr(math, name)(values, y), x)

    doc = f"""``{name}`` of the values of a sparse matrix and a number; the rest stays without.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.structured_{name}(x, 2.0).eval().nnz
        1
    """
    return named(function, f"structured_{name}", doc)


def conj(x: SparseLike) -> SparseVariable:
    """The complex conjugate; of real numbers the matrix itself.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.conj(x).eval().toarray()
        array([[0., 2.]])
    """
    x = as_sparse_variable(x)
    return structured(conj_, x) if x.type.kind == "c" else x


FUNCTIONS: dict[str, Callable[..., object]] = {
    **{name: _one(name, name) for name in _OF_ZERO},
    **{f"structured_{name}": _one(name, f"structured_{name}") for name in _OF_VALUES},
    **{f"structured_{name}": _two(function) for name, function in _OF_TWO.items()},
}
FUNCTIONS["conj"] = conj
FUNCTIONS["conjugate"] = FUNCTIONS["structured_conjugate"] = FUNCTIONS["conj"]
