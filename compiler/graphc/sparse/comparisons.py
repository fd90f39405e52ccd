# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparisons of sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphc.graph.basic import Apply
from graphc.graph.op import Op
from graphc.sparse.basic import as_dense, as_sparse_variable, is_sparse
from graphc.sparse.type import SparseTensorType
from graphc.tensor import compat as math

if TYPE_CHECKING:
    from graphc.sparse.like import Matrix, MatrixLike, SparseLike, SparseOrTensor
    from graphc_runtime.thunk import Register

_COMPARISONS = {
    "eq": "__eq__",
    "neq": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
}


class Compare(Op):
    """Elementwise comparison of two sparse matrices by SciPy, a sparse matrix of booleans.

    Args:
        kind: eq, neq, lt, le, gt or ge.
    """

    __props__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make_node(self, x: SparseLike, y: SparseLike) -> Apply:
        x, y = as_sparse_variable(x), as_sparse_variable(y)
        known = tuple(n if m is None else m for m, n in zip(x.type.shape, y.type.shape, strict=True))
        return Apply(self, [x, y], [SparseTensorType(x.type.format, "bool", known).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[Matrix], output_storage: Sequence[Register]) -> None:
        x, y = inputs
        if x.shape != y.shape:
            raise ValueError(f"{self.kind}: sparse matrices of shapes {x.shape} and {y.shape}")
        found = getattr(x, _COMPARISONS[self.kind])(y)
        output_storage[0][0] = node.outputs[0].type.filter(found, allow_downcast=True)

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [False]]


def _comparison(kind: str, words: str) -> Callable[[MatrixLike, MatrixLike], SparseOrTensor]:
    def function(x: MatrixLike, y: MatrixLike) -> SparseOrTensor:
        if is_sparse(x) and is_sparse(y):
            return Compare(kind)(x, y)
        x, y = (as_dense(v) if is_sparse(v) else v for v in (x, y))
        return getattr(math, kind)(x, y)

    function.__name__ = function.__qualname__ = kind
    function.__doc__ = f"""Where x is {words} y: sparse of two sparse matrices, else dense booleans.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.{kind}(x, 0.5).eval().shape
        (1, 2)
    """
    return function


eq, neq, lt, le, gt, ge = (
    _comparison(kind, words)
    for kind, words in {
        "eq": "equal to",
        "neq": "different from",
        "lt": "less than",
        "le": "at most",
        "gt": "greater than",
        "ge": "at least",
    }.items()
)
