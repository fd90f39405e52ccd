# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the values of a sparse matrix; what has no value stays without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from graphc.ops.math import conj as conj_
from graphc.sparse.arithmetic import structured
from graphc.sparse.basic import as_sparse_variable
from graphc.tensor import compat as math

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.sparse.like import SparseLike
    from graphc.sparse.type import SparseVariable

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

    function.__name__ = function.__qualname__ = public
    function.__doc__ = f"""``{name}`` of the values of a sparse matrix; what has no value stays without.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.{public}(x).eval().nnz
        1
    """
    return function


def _two(name: str) -> Callable[[SparseLike, TensorLike], SparseVariable]:
    def function(x: SparseLike, y: TensorLike) -> SparseVariable:
        return structured(lambda values: getattr(math, name)(values, y), x)

    function.__name__ = function.__qualname__ = f"structured_{name}"
    function.__doc__ = f"""``{name}`` of the values of a sparse matrix and a number; the rest stays without.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 1.0]])
        >>> graphc.sparse.structured_{name}(x, 2.0).eval().nnz
        1
    """
    return function


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
