# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums and the diagonal of a sparse matrix, as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ops.create import alloc, arange
from graphc.ops.create import zeros as zeros_
from graphc.ops.dimshuffle import normalize_axis
from graphc.ops.join import stack
from graphc.ops.math import eq, maximum, minimum, switch
from graphc.ops.reduce import sum as sum_
from graphc.ops.shaping import dimshuffle
from graphc.sparse.basic import CSM, Regular, as_sparse_variable, csm_data, positions, size_along
from graphc.sparse.conversion import SparseFromDense
from graphc.tensor.indexing import inc_subtensor

if TYPE_CHECKING:
    from graphc.graph.basic import Maybe, Variable, Variables
    from graphc.graph.tensor.variable import TensorVariable
    from graphc.sparse.like import SparseLike


def sp_sum(x: SparseLike, axis: int | None = None, sparse_grad: bool = True) -> TensorVariable:
    """Sums of a sparse matrix: of all elements, or along an axis, a vector.

    Args:
        x: sparse matrix.
        axis: 0, 1, or None for all elements.
        sparse_grad: whether the gradient has values only where the matrix has them; else every element has
            one, as many as in a dense matrix.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 2.0]])
        >>> graphc.sparse.sp_sum(x).eval()
        array(3.)
    """
    x = as_sparse_variable(x)
    if axis is None:
        total, kept = sum_(csm_data(x)), None
    else:
        kept = 1 - normalize_axis(axis, 2, "sp_sum")
        zeros = zeros_(size_along(x, kept), dtype=x.type.dtype)
        total = inc_subtensor(zeros[positions(x)[kept]], csm_data(x))
    return total if sparse_grad else Regular(_of_all, kept)(total, x)


def _of_all(g: Variable, sources: Variables, kept: int | None) -> Maybe:
    """Every element has the cotangent of the sum that it is part of; ``kept`` is the axis of the sums."""
    (x,) = sources
    along = g if kept is None else dimshuffle(g, (0, "x") if kept == 0 else ("x", 0))
    return [SparseFromDense(x.type.format)(alloc(along, size_along(x, 0), size_along(x, 1)))]


def diag(x: SparseLike) -> TensorVariable:
    """The main diagonal of a sparse matrix, a vector. Its gradient has values on the whole diagonal.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 0.0], [0.0, 2.0]])
        >>> graphc.sparse.diag(x).eval()
        array([1., 2.])
    """
    x = as_sparse_variable(x)
    rows, columns = positions(x)
    size = minimum(size_along(x, 0), size_along(x, 1))
    values = switch(eq(rows, columns), csm_data(x), 0)
    inside = minimum(rows, maximum(size - 1, 0))
    found = inc_subtensor(zeros_(size, dtype=x.type.dtype)[inside], values)
    return Regular(_on_diagonal)(found, x)


def _on_diagonal(g: Variable, sources: Variables, parameter: object) -> Maybe:
    (x,) = sources
    sizes = [size_along(x, 0), size_along(x, 1)]
    starts = minimum(arange(sizes[x.type.format == "csc"] + 1), g.shape[0])
    return [CSM(x.type.format)(g, arange(g.shape[0]), starts, stack(sizes))]
