# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Order of the indices of sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.sparse.basic import (
    Regular,
    as_sparse_variable,
    same_places,
)
from graphc.sparse.conversion import remove0
from graphc.sparse.structure import gathered

if TYPE_CHECKING:
    from graphc.sparse.like import SparseLike
    from graphc.sparse.type import SparseVariable


def ensure_sorted_indices(x: SparseLike) -> SparseVariable:
    """A sparse matrix with sorted indices in each row (or column, if compressed by columns).

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[1.0, 2.0]])
        >>> graphc.sparse.ensure_sorted_indices(x).eval().toarray()
        array([[1., 2.]])
    """
    x = as_sparse_variable(x)
    return Regular(same_places)(gathered("same", [x], x.type.shape), x)


def clean(x: SparseLike) -> SparseVariable:
    """A sparse matrix without zeros among its values, and with sorted indices.

    Examples:
        >>> x = graphc.sparse.csr_from_dense([[0.0, 2.0]])
        >>> graphc.sparse.clean(x).eval().nnz
        1
    """
    return ensure_sorted_indices(remove0(x))
