# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagonals and traces of matrices and of batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.tensor import rearranging

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["diagonal", "trace"]


def diagonal(a: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> TensorVariable:
    """A diagonal of each matrix, as ``numpy.linalg.diagonal``: ``(..., m, n) -> (..., k)``.

    Args:
        a: array-like of at least 2 dimensions.
        offset: which diagonal; positive ones are above the main diagonal.
        axis1, axis2: the axes of the matrices.

    Examples:
        >>> pt.linalg.diagonal([[1, 2], [3, 4]]).eval()
        array([1, 4])
    """
    return rearranging.diagonal(a, offset, axis1, axis2)


def trace(a: TensorLike, offset: int = 0, axis1: int = -2, axis2: int = -1) -> TensorVariable:
    """The sum of a diagonal of each matrix, as ``numpy.linalg.trace``; arguments as `diagonal`.

    Examples:
        >>> pt.linalg.trace([[1, 2], [3, 4]]).eval()
        array(5)
    """
    return rearranging.trace(a, offset, axis1, axis2)
