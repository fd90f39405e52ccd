# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared sparse matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.shared import SharedVariable
from graphc.sparse.type import FORMATS, SparseTensorType, SparseVariable

if TYPE_CHECKING:
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
