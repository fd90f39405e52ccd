# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of the array API standard, which are in its main namespace and in ``linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import graphc.tensor as pt
from graphc.tensor import linalg

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]


def matmul(x1: TensorLike, x2: TensorLike, /) -> TensorVariable:
    """Matrix products."""
    return pt.matmul(x1, x2)


def matrix_transpose(x: TensorLike, /) -> TensorVariable:
    """Matrices with rows and columns exchanged."""
    return pt.matrix_transpose(x)


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: int = 2) -> TensorVariable:
    """Sums of products over pairs of axes."""
    return pt.tensordot(x1, x2, axes)


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> TensorVariable:
    """Sums of products along an axis; the first operand is conjugated."""
    return linalg.vecdot(x1, x2, axis=axis)
