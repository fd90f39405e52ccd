# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Permutations: their inverses, and rows in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.math import cast
from graphc.ops.shaping import broadcast_to
from graphc.ops.sizes import size_of, sizes_of
from graphc.tensor.dims import atleast_Nd, broadcast_shape
from graphc.tensor.indexing import take
from graphc.tensor.sorting import argsort, take_along_axis

if TYPE_CHECKING:
    from graphc.graph.tensor.like import TensorLike
    from graphc.graph.tensor.variable import TensorVariable

__all__ = ["inverse_permutation", "permute_row_elements"]


def inverse_permutation(perm: TensorLike) -> TensorVariable:
    """The inverses of permutations of the first integers, along the last axis, in their dtype.

    Examples:
        >>> pt.inverse_permutation([2, 0, 1]).eval()
        array([1, 2, 0])
    """
    x = as_tensor_variable(perm)
    return cast(argsort(x, axis=-1), x.type.dtype)


def permute_row_elements(x: TensorLike, y: TensorLike, inverse: bool = False) -> TensorVariable:
    """The last axis of x in the order of integers y, or in the inverse of it; leading axes broadcast.

    Examples:
        >>> pt.permute_row_elements([[1, 2, 3], [4, 5, 6]], [2, 0, 1]).eval()
        array([[3, 1, 2],
               [6, 4, 5]])
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    if inverse:
        y = inverse_permutation(y)
    if y.type.ndim == 1:
        return take(x, y, axis=-1)
    rank = max(x.type.ndim, y.type.ndim)
    x, y = atleast_Nd(x, n=rank), atleast_Nd(y, n=rank)
    shape = broadcast_shape([*sizes_of(x)[:-1]], [*sizes_of(y)[:-1]], arrays_are_shapes=True)
    x, y = (broadcast_to(v, [*shape, size_of(v, rank - 1)]) for v in (x, y))
    return take_along_axis(x, y, axis=-1)
