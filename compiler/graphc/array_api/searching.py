# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the array API standard that search, sort and compare elements, and those of sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import graphc.tensor as pt
from graphc.array_api.types import UniqueAll, UniqueCounts, UniqueInverse, as_array
from graphc.hooks import publish

if TYPE_CHECKING:
    from graphc.graph.basic import Variable
    from graphc.graph.tensor import AxisLike, TensorLike
    from graphc.graph.tensor.variable import TensorVariable


def argmax(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Positions of largest elements."""
    return pt.argmax(x, axis, keepdims)


def argmin(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> TensorVariable:
    """Positions of smallest elements."""
    return pt.argmin(x, axis, keepdims)


def nonzero(x: TensorLike, /) -> tuple[TensorVariable, ...]:
    """Positions of the elements that are not zero, one vector for each axis."""
    return tuple(pt.nonzero(x))


def where(
    condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None, /
) -> Variable | tuple[Variable, ...]:
    """Elements of ``x1`` where the condition holds, of ``x2`` elsewhere; without these, the positions where
    it holds, as NumPy gives them.
    """
    return nonzero(condition) if x1 is None or x2 is None else pt.where(condition, x1, x2)


def searchsorted(
    x1: TensorLike, x2: TensorLike, /, *, side: str = "left", sorter: TensorLike | None = None
) -> TensorVariable:
    """Insertion positions of the elements of ``x2`` that keep ``x1`` sorted."""
    return pt.searchsorted(x1, x2, side=side, sorter=sorter)


def sort(
    x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> TensorVariable:
    """Sorted elements along an axis."""
    found = pt.sort(x, axis)
    return pt.flip(found, axis) if descending else found


def argsort(
    x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> TensorVariable:
    """Positions of the elements in sorted order; equal ones keep their order."""
    if not descending:
        return pt.argsort(x, axis, kind="stable")
    # The last of equal elements comes first in the reversed array, and so first of all after sorting it.
    x = as_array(x)
    back = pt.argsort(pt.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - pt.flip(back, axis)


def _inverse(x: TensorVariable, found: TensorVariable) -> TensorVariable:
    return pt.reshape(found, x.shape, ndim=x.ndim) if found.ndim != x.ndim else found


def unique_all(x: TensorLike, /) -> UniqueAll:
    """Distinct elements and all about them."""
    x = as_array(x)
    values, indices, inverse, counts = pt.unique(x, True, True, True)
    return UniqueAll(values, indices, _inverse(x, inverse), counts)


def unique_counts(x: TensorLike, /) -> UniqueCounts:
    """Distinct elements and their counts."""
    return UniqueCounts(*pt.unique(x, return_counts=True))


def unique_inverse(x: TensorLike, /) -> UniqueInverse:
    """Distinct elements and how to put the array together from them."""
    x = as_array(x)
    values, inverse = pt.unique(x, return_inverse=True)
    return UniqueInverse(values, _inverse(x, inverse))


def unique_values(x: TensorLike, /) -> TensorVariable:
    """Distinct elements."""
    return pt.unique(x)


publish(globals())
